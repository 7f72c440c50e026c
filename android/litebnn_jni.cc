// The native methods of LitebnnDelegate.java.
#include <jni.h>

#include <exception>
#include <string>
#include <vector>

#include "litebnn/litebnn.h"

namespace {

// The last error message. It is a global variable, because the C interface passes no user data to its error callback.
thread_local std::string reason;

void Report(const char* message) {
  try {
    reason = message;
  } catch (const std::exception&) {
    reason.clear();
  }
}

// Raises a Java exception, which Java throws when the native method returns.
void Throw(JNIEnv* env, const char* name, const char* message) {
  jclass type = env->FindClass(name);
  if (type != nullptr) env->ThrowNew(type, message);
}

// The texts of an array of Java strings. Returns false if a Java exception is pending, as for an element that is null.
bool Read(JNIEnv* env, jobjectArray array, std::vector<std::string>* texts) {
  for (jsize i = 0; i < env->GetArrayLength(array); ++i) {
    auto* element = static_cast<jstring>(env->GetObjectArrayElement(array, i));
    if (element == nullptr) {
      Throw(env, "java/lang/IllegalArgumentException", "an option's key or value is null");
      return false;
    }
    const char* characters = env->GetStringUTFChars(element, nullptr);
    if (characters == nullptr) return false;
    texts->emplace_back(characters);
    env->ReleaseStringUTFChars(element, characters);
    env->DeleteLocalRef(element);
  }
  return true;
}

std::vector<const char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

jlong Create(JNIEnv* env, jobjectArray keys, jobjectArray values) {
  std::vector<std::string> names, settings;
  if (!Read(env, keys, &names) || !Read(env, values, &settings)) return 0;
  reason.clear();
  TfLiteDelegate* delegate =
      tflite_plugin_create_delegate(Pointers(names).data(), Pointers(settings).data(), names.size(), Report);
  if (delegate == nullptr) Throw(env, "java/lang/IllegalArgumentException", reason.c_str());
  return reinterpret_cast<jlong>(delegate);
}

}  // namespace

extern "C" {

JNIEXPORT jlong JNICALL Java_org_litebnn_LitebnnDelegate_create(JNIEnv* env, jclass, jobjectArray keys,
                                                                jobjectArray values) {
  try {
    return Create(env, keys, values);
  } catch (const std::exception& error) {  // memory ran out
    Throw(env, "java/lang/OutOfMemoryError", error.what());
    return 0;
  }
}

JNIEXPORT void JNICALL Java_org_litebnn_LitebnnDelegate_destroy(JNIEnv*, jclass, jlong handle) {
  tflite_plugin_destroy_delegate(reinterpret_cast<TfLiteDelegate*>(handle));
}

JNIEXPORT jstring JNICALL Java_org_litebnn_LitebnnDelegate_version(JNIEnv* env, jclass) {
  return env->NewStringUTF(litebnn_version());
}

}  // extern "C"
