/* The C interface of litebnn's op library.
 *
 * The library holds the custom ops of binarized neural networks for any TensorFlow Lite / LiteRT runtime. docs/ops.md
 * describes the ops, and docs/library.md shows each way to register them. This header includes none of the runtime's
 * headers and may be included before or after them. */
#ifndef LITEBNN_LITEBNN_H_
#define LITEBNN_LITEBNN_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32) && defined(LITEBNN_BUILDING)
#define LITEBNN_EXPORT __declspec(dllexport)
#elif defined(__GNUC__) && !defined(_WIN32)
#define LITEBNN_EXPORT __attribute__((visibility("default")))
#else
#define LITEBNN_EXPORT
#endif

/* Structures that the runtime defines; this header needs only pointers to them. */
struct TfLiteRegistration;
struct TfLiteDelegate;
struct LiteRtEnvironmentT; /* what a LiteRtEnvironment points to */

/** A custom op and its registration. */
typedef struct LitebnnOp {
  /** The custom op's name in a model, such as "LceBconv2d". */
  const char* name;
  /** The structure with the op's functions that a runtime accepts. */
  const struct TfLiteRegistration* registration;
} LitebnnOp;

/** Version of the library, as MAJOR.MINOR.PATCH. */
LITEBNN_EXPORT const char* litebnn_version(void);

/** The registration of the op with that name, for TfLiteInterpreterOptionsAddCustomOp, or null if litebnn has no such
 * op. The registration lives as long as the library is loaded.
 */
LITEBNN_EXPORT const struct TfLiteRegistration* litebnn_registration(const char* op_name);

/** An array of all ops, whose length is stored in `*count`. */
LITEBNN_EXPORT const LitebnnOp* litebnn_ops(size_t* count);

/** Creates a delegate; this is the runtime's external delegate interface. The options, all optional, are
 *
 * - num_threads: number of threads, 1 or more; by default the number that the runtime recommends
 * - isa: instruction set (ISA) to run, such as "portable"; by default the one that the environment variable
 *   LITEBNN_ISA names, else the best for this CPU
 * - verbose: 1 logs what the delegate takes over, and its memory, to stderr
 * - describe: 1 keeps what litebnn_describe returns
 *
 * Returns null for an unknown key or a value out of range. The reason goes to `report_error` in one call, or to stderr
 * if `report_error` is null. For an unknown ISA, it lists the ISAs of this CPU, the best one first. The delegate must
 * outlive every interpreter that uses it.
 */
LITEBNN_EXPORT struct TfLiteDelegate* tflite_plugin_create_delegate(const char* const* keys, const char* const* values,
                                                                    size_t count,
                                                                    void (*report_error)(const char* message));
/** Frees a delegate, once no interpreter uses it any more. */
LITEBNN_EXPORT void tflite_plugin_destroy_delegate(struct TfLiteDelegate* delegate);

/** What the delegate does with the nodes of models, as JSON in ASCII::
 *
 *   {"graphs": [{"left": [{"index": 2, "builtin_code": 0, "reason": "litebnn has no such op"}],
 *                "partitions": [{"steps": [
 *                    {"op": "LceBconv2d with ADD",
 *                     "nodes": [{"index": 3, "op": "ADD"}, {"index": 1, "op": "LceBconv2d"}]}]}]}]}
 *
 * There is an entry in `graphs` for each subgraph that a runtime has passed to the delegate, in that order; one that is
 * passed again, as after a resize, has its newest state. A step runs one node, or several that are fused into its op,
 * and `index` is a node's index in its subgraph. `left` has the nodes that the delegate leaves to the runtime; nodes of
 * custom ops have a `custom_name` too. Names are cut after 100 bytes.
 *
 * `delegate` is a result of tflite_plugin_create_delegate. The text is the delegate's, and is valid until the next call
 * or until the delegate is destroyed. Returns null if the delegate was made without the option `describe`, or if memory
 * ran out. No runtime may be delegating a graph to the delegate during the call.
 */
LITEBNN_EXPORT const char* litebnn_describe(struct TfLiteDelegate* delegate);

/** Adds the delegate as the last accelerator of a LiteRT environment. Models compiled for the CPU in that environment
 * afterwards may hold litebnn's ops. The delegate uses the model's number of threads. It reads the options above from
 * the model's opaque options with the identifier "litebnn", whose payload is text such as "isa=portable verbose=1".
 *
 * Returns 0 on success. If this process has no LiteRT of version 2.1.6 or newer that exports its functions, it writes
 * one line to stderr and returns LiteRT's status. docs/compiled-model.md describes the other way to register the
 * delegate, which puts it before XNNPACK.
 */
LITEBNN_EXPORT int litebnn_register_accelerator(struct LiteRtEnvironmentT* environment);

#ifdef __cplusplus
}
#endif

#endif /* LITEBNN_LITEBNN_H_ */
