/* A host: frames come from a callback, for two streams in turn. It writes what each step gives, and prints the latency.

   Usage: host ARTIFACT INPUT HIDDEN FRAMES RESULTS
   FRAMES has float32 numbers: [steps, 2 streams, INPUT]. RESULTS gets float32 numbers: [steps, 2 streams, HIDDEN]. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "host.h"

enum { STREAMS = 2, WARM_UP = 200, CALLS = 2000 };

/* A source of frames: writes the next frame to x and returns 1, or returns 0 at the end. */
typedef int next_frame(void *source, float *x, int input);

static int read_frame(void *source, float *x, int input) {
  return fread(x, sizeof *x, input, source) == (size_t)input;
}

void fail(const char *what) {
  fprintf(stderr, "host: %s\n", what);
  exit(1);
}

static void serve(void *streams[], next_frame *next, void *source, float *x, int input, float *y, int hidden, FILE *results) {
  for (int turn = 0; next(source, x, input); turn = (turn + 1) % STREAMS) {
    step(streams[turn], x, y);
    if (fwrite(y, sizeof *y, hidden, results) != (size_t)hidden) fail("the results cannot be written");
  }
}

static int ascending(const void *a, const void *b) {
  long left = *(const long *)a, right = *(const long *)b;
  return (left > right) - (left < right);
}

/* The median time of a step in nanoseconds: of CALLS steps, after WARM_UP steps that do not count. */
static long median_step(void *stream, const float *x, float *y) {
  static long times[CALLS];
  for (int call = -WARM_UP; call < CALLS; call++) {
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    step(stream, x, y);
    clock_gettime(CLOCK_MONOTONIC, &after);
    if (call >= 0) times[call] = (after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec;
  }
  qsort(times, CALLS, sizeof *times, ascending);
  return times[CALLS / 2];
}

int main(int count, char **arguments) {
  if (count != 6) fail("usage: host ARTIFACT INPUT HIDDEN FRAMES RESULTS");
  int input = atoi(arguments[2]), hidden = atoi(arguments[3]);
  FILE *frames = fopen(arguments[4], "rb"), *results = fopen(arguments[5], "wb");
  if (input < 1 || hidden < 1) fail("INPUT and HIDDEN are whole numbers above 0");
  if (!frames || !results) fail("FRAMES cannot be read, or RESULTS cannot be written");

  float *x = calloc(input, sizeof *x), *y = calloc(hidden, sizeof *y);
  void *program = load(arguments[1], input, hidden), *streams[STREAMS];
  for (int stream = 0; stream < STREAMS; stream++) streams[stream] = init(program);
  serve(streams, read_frame, frames, x, input, y, hidden, results);
  if (fclose(results)) fail("the results cannot be written");
  printf("median_ns %ld\n", median_step(streams[0], x, y));
  return 0;
}
