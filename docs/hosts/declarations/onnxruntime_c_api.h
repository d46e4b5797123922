/* The part of ONNX Runtime's C API that onnxruntime.c uses, for machines without its header: PyPI's package has the
   library alone. The API is a table of functions whose order never changes; the gaps are functions that are not used.
   Where you have the real onnxruntime_c_api.h (Debian 13: libonnxruntime-dev), put its folder first in the include path. */
#include <stddef.h>
#include <stdint.h>

#define ORT_API_VERSION 16
#define ORT_LOGGING_LEVEL_ERROR 3
#define ORT_DISABLE_ALL 0
#define ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT 1
enum OrtAllocatorType { OrtArenaAllocator = 1 };
enum OrtMemType { OrtMemTypeDefault = 0 };

typedef struct OrtEnv OrtEnv;
typedef struct OrtStatus OrtStatus;
typedef struct OrtSession OrtSession;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtValue OrtValue;
typedef struct OrtIoBinding OrtIoBinding;

typedef struct OrtApi {
  void *gap_0[2];
  const char *(*GetErrorMessage)(const OrtStatus *status);
  OrtStatus *(*CreateEnv)(int level, const char *name, OrtEnv **environment);
  void *gap_4[3];
  OrtStatus *(*CreateSession)(const OrtEnv *environment, const char *path, const OrtSessionOptions *options, OrtSession **session);
  void *gap_8[2];
  OrtStatus *(*CreateSessionOptions)(OrtSessionOptions **options);
  void *gap_11[12];
  OrtStatus *(*SetSessionGraphOptimizationLevel)(OrtSessionOptions *options, int level);
  OrtStatus *(*SetIntraOpNumThreads)(OrtSessionOptions *options, int threads);
  OrtStatus *(*SetInterOpNumThreads)(OrtSessionOptions *options, int threads);
  void *gap_26[23];
  OrtStatus *(*CreateTensorWithDataAsOrtValue)(const OrtMemoryInfo *memory, void *data, size_t nbytes, const int64_t *shape,
                                               size_t rank, int type, OrtValue **value);
  void *gap_50[19];
  OrtStatus *(*CreateCpuMemoryInfo)(enum OrtAllocatorType allocator, enum OrtMemType type, OrtMemoryInfo **memory);
  void *gap_70[63];
  OrtStatus *(*RunWithBinding)(OrtSession *session, const OrtRunOptions *options, const OrtIoBinding *binding);
  OrtStatus *(*CreateIoBinding)(OrtSession *session, OrtIoBinding **binding);
  void *gap_135;
  OrtStatus *(*BindInput)(OrtIoBinding *binding, const char *name, const OrtValue *value);
  OrtStatus *(*BindOutput)(OrtIoBinding *binding, const char *name, const OrtValue *value);
} OrtApi;

typedef struct OrtApiBase {
  const OrtApi *(*GetApi)(uint32_t version);
  const char *(*GetVersionString)(void);
} OrtApiBase;

const OrtApiBase *OrtGetApiBase(void);
