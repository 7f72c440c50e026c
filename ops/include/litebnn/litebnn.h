/* The C interface of litebnn's op library.
 *
 * The custom ops of binarized neural networks, which docs/ops.md describes, for any TensorFlow Lite / LiteRT runtime.
 * This header needs none of the runtime's headers and may be included before or after them. docs/library.md shows each
 * way to register the ops. */
#ifndef LITEBNN_LITEBNN_H_
#define LITEBNN_LITEBNN_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LITEBNN_EXPORT __attribute__((visibility("default")))
#else
#define LITEBNN_EXPORT
#endif

/* The runtime's own structures, left incomplete here. */
struct TfLiteRegistration;
struct TfLiteDelegate;
struct LiteRtEnvironmentT; /* what a LiteRtEnvironment points to */

/** One of the ops. */
typedef struct LitebnnOp {
  /** The custom op's name in a model, such as "LceBconv2d". */
  const char* name;
  /** What a runtime is told of it. */
  const struct TfLiteRegistration* registration;
} LitebnnOp;

/** Version of the library, as MAJOR.MINOR.PATCH. */
LITEBNN_EXPORT const char* litebnn_version(void);

/** The registration of the op with that name, for TfLiteInterpreterOptionsAddCustomOp; null where litebnn has no such
 * op. It lives as long as the library is loaded. */
LITEBNN_EXPORT const struct TfLiteRegistration* litebnn_registration(const char* op_name);

/** All ops, `*count` of them. */
LITEBNN_EXPORT const LitebnnOp* litebnn_ops(size_t* count);

/** The runtime's external delegate interface. The options, all optional, are
 *
 * - num_threads: 1 or more; the number of threads recommended by the runtime if not given
 * - isa: instruction set (ISA) to run, such as "portable"; the best for this CPU if not given
 * - verbose: 1 logs what the delegate takes over, and its memory, to stderr
 *
 * An unknown key or a value out of range gives null, and one call of `report_error` that says why, or a line on stderr
 * where that is null. The delegate must outlive every interpreter that it was given to. */
LITEBNN_EXPORT struct TfLiteDelegate* tflite_plugin_create_delegate(const char* const* keys, const char* const* values,
                                                                    size_t count,
                                                                    void (*report_error)(const char* message));
/** Frees a delegate, once no interpreter uses it any more. */
LITEBNN_EXPORT void tflite_plugin_destroy_delegate(struct TfLiteDelegate* delegate);

/** Adds the delegate to the accelerators of a LiteRT environment, behind those that it has: what is compiled in it for
 * the CPU from then on may hold the four ops. It has the model's number of threads, and takes options as above from the
 * model's opaque options with the identifier "litebnn", whose payload is text such as "isa=portable verbose=1".
 *
 * Returns 0, or LiteRT's status after one line on stderr where this process has no LiteRT of version 2.1.6 or newer
 * that exports its functions. docs/library.md tells of the other way, which puts the delegate before XNNPACK. */
LITEBNN_EXPORT int litebnn_register_accelerator(struct LiteRtEnvironmentT* environment);

#ifdef __cplusplus
}
#endif

#endif /* LITEBNN_LITEBNN_H_ */
