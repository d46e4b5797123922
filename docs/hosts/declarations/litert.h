/* The part of LiteRT's C API (litert/c in its source) that litert.c uses: PyPI's package has the library alone. */
#include <stddef.h>
#include <stdint.h>

typedef struct LiteRtEnvironmentT *LiteRtEnvironment;
typedef struct LiteRtModelT *LiteRtModel;
typedef struct LiteRtSignatureT *LiteRtSignature;
typedef struct LiteRtOptionsT *LiteRtOptions;
typedef struct LiteRtCompiledModelT *LiteRtCompiledModel;
typedef struct LiteRtTensorBufferT *LiteRtTensorBuffer;

enum { kLiteRtStatusOk = 0, kLiteRtHwAcceleratorCpu = 1, kLiteRtElementTypeFloat32 = 1 };
enum { LITERT_TENSOR_MAX_RANK = 8, LITERT_HOST_MEMORY_BUFFER_ALIGNMENT = 64 };

typedef struct {
  unsigned int rank : 7;
  unsigned int has_strides : 1;
  int32_t dimensions[LITERT_TENSOR_MAX_RANK];
  uint32_t strides[LITERT_TENSOR_MAX_RANK];
} LiteRtLayout;

typedef struct {
  int element_type;
  LiteRtLayout layout;
} LiteRtRankedTensorType;

int LiteRtCreateEnvironment(int count, const void *options, LiteRtEnvironment *environment);
int LiteRtCreateModelFromFile(LiteRtEnvironment environment, const char *path, LiteRtModel *model);
int LiteRtGetModelSignature(LiteRtModel model, size_t index, LiteRtSignature *signature);
int LiteRtGetSignatureKey(LiteRtSignature signature, const char **key);
int LiteRtCreateOptions(LiteRtOptions *options);
int LiteRtSetOptionsHardwareAccelerators(LiteRtOptions options, int accelerators);
int LiteRtCreateCompiledModel(LiteRtEnvironment environment, LiteRtModel model, LiteRtOptions options, LiteRtCompiledModel *compiled);
int LiteRtCreateTensorBufferFromHostMemory(const LiteRtRankedTensorType *type, void *memory, size_t nbytes, void (*free)(void *),
                                           LiteRtTensorBuffer *buffer);
int LiteRtRunCompiledModel(LiteRtCompiledModel compiled, size_t signature, size_t inputs, LiteRtTensorBuffer *input, size_t outputs,
                           LiteRtTensorBuffer *output);
