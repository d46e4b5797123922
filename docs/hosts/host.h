/* What a host needs of a runtime: three functions. Each file <runtime> beside this one has them; main.c calls them. */
#ifndef HOST_H
#define HOST_H
#ifdef __cplusplus
extern "C" {
#endif

/* Reads an artifact that rnnbench built: a network of one layer that takes `input` numbers and gives `hidden` numbers. */
void *load(const char *artifact, int input, int hidden);

/* Opens a stream. It has a state of its own, which is zero. */
void *init(void *program);

/* Advances a stream by one frame: reads x[input], writes y[hidden], and keeps the state for the next call. */
void step(void *stream, const float *x, float *y);

/* Says what went wrong and ends the program. */
void fail(const char *what);

#ifdef __cplusplus
}
#endif
#endif
