package org.litebnn;

import java.util.Collections;
import java.util.Map;
import org.tensorflow.lite.Delegate;

/**
 * litebnn's delegate, for {@code Interpreter.Options.addDelegate}. Close the delegate after every interpreter that uses it.
 *
 * <pre>{@code
 * try (LitebnnDelegate delegate = new LitebnnDelegate();
 *     Interpreter interpreter = new Interpreter(model, new Interpreter.Options().addDelegate(delegate))) {
 *   interpreter.run(input, output);
 * }
 * }</pre>
 */
public final class LitebnnDelegate implements Delegate {
  static {
    System.loadLibrary("litebnn_jni");
  }

  private long handle;

  /** Makes a delegate with the default options. */
  public LitebnnDelegate() {
    this(Collections.emptyMap());
  }

  /**
   * Makes a delegate.
   *
   * @param options those of {@code tflite_plugin_create_delegate}: {@code num_threads}, {@code isa}, {@code verbose}.
   * @throws IllegalArgumentException if a key is unknown or a value is out of range.
   */
  public LitebnnDelegate(Map<String, String> options) {
    handle = create(options.keySet().toArray(new String[0]), options.values().toArray(new String[0]));
  }

  /** Version of the native library, as MAJOR.MINOR.PATCH. */
  public static native String version();

  /**
   * The address of the native delegate.
   *
   * @throws IllegalStateException if the delegate is closed.
   */
  @Override
  public synchronized long getNativeHandle() {
    if (handle == 0) {
      throw new IllegalStateException("the litebnn delegate is closed");
    }
    return handle;
  }

  /** Frees the native delegate. A second call does nothing. */
  @Override
  public synchronized void close() {
    if (handle != 0) {
      destroy(handle);
      handle = 0;
    }
  }

  private static native long create(String[] keys, String[] values);

  private static native void destroy(long handle);
}
