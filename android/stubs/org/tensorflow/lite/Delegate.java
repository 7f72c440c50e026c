package org.tensorflow.lite;

import java.io.Closeable;

/** The part of TensorFlow Lite's interface that LitebnnDelegate is compiled against. It is not distributed. */
public interface Delegate extends Closeable {
  long getNativeHandle();

  @Override
  default void close() {}
}
