// What the tests of the recording layer share: a log in a file that goes with the
// process, and its lines.
#ifndef VKOMP_TEST_RECORD_H
#define VKOMP_TEST_RECORD_H

#define _GNU_SOURCE

#include "program.h"

#include <fnmatch.h>
#include <unistd.h>

static const char *const record_layer[] = { "VK_LAYER_VKOMP_record", NULL };

enum { LINES = 200000 };

typedef struct record {
	char path[64];
	char *bytes;
	char *lines[LINES];
	int count;
} record;

// Has the layer write to a file. suffix may be "%d".
static void record_begin(record *r, const char *suffix)
{
	memset(r, 0, sizeof *r);
	snprintf(r->path, sizeof r->path, "/tmp/vkomp-record-%ld%s", (long)getpid(), suffix);
	setenv("VKOMP_RECORD", r->path, 1);
}

// Reads the log and removes it.
static void record_read(record *r)
{
	FILE *f = fopen(r->path, "rb");
	if (f == NULL) {
		CHECK(false, "no log at %s", r->path);
		return;
	}
	fseek(f, 0, SEEK_END);
	size_t size = (size_t)ftell(f);
	rewind(f);
	r->bytes = calloc(size + 1, 1);
	if (r->bytes == NULL || fread(r->bytes, 1, size, f) != size)
		program_must(VK_ERROR_OUT_OF_HOST_MEMORY, "fread");
	fclose(f);
	unlink(r->path);
	for (char *line = strtok(r->bytes, "\n"); line != NULL && r->count < LINES; line = strtok(NULL, "\n"))
		r->lines[r->count++] = line;
}

#endif
