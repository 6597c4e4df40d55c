// Threads and devices share a log or have logs of their own; lines stay whole, each
// is of the thread that the log says, and a wait is behind the submission that it
// waits for.
#include "test_record.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 200 };

typedef struct worker {
	program *p;
	VkSemaphore timeline;
	pthread_t thread;
} worker;

// vkQueueSubmit needs one thread at a time for a queue.
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *argument)
{
	worker *w = argument;
	for (uint64_t k = 1; k <= ROUNDS; k++) {
		// Of a pool of its own, which goes while others submit.
		program_queue q = w->p->queues[0];
		MUST(vkCreateCommandPool(w->p->device, &(VkCommandPoolCreateInfo){
			.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
			.queueFamilyIndex = q.family,
		}, NULL, &q.pool));
		VkCommandBuffer c = program_begin(w->p, &q);
		program_barrier(c);
		program_end(c);
		pthread_mutex_lock(&queue_lock);
		MUST(program_submit(&q, c, 0, NULL, 1, &(program_point){ w->timeline, k }, VK_NULL_HANDLE));
		pthread_mutex_unlock(&queue_lock);
		CHECK(program_reaches(w->p, w->timeline, k, UINT64_MAX), "value %llu", (unsigned long long)k);
		vkDestroyCommandPool(w->p->device, q.pool, NULL);
	}
	return NULL;
}

// The lines of a log: of each semaphore, signals and waits take turns, from one
// thread each.
static void examine(record *r, int semaphores)
{
	uint64_t signalled[THREADS + 1] = { 0 }, waited[THREADS + 1] = { 0 };
	int owner[THREADS + 1] = { 0 }, thread = 0;
	for (int k = 0; k < r->count; k++) {
		unsigned queue, commands, semaphore = 0;
		unsigned long long value;
		char how;
		if (sscanf(r->lines[k], "thread %d", &thread) == 1)
			continue;
		if (sscanf(r->lines[k], "submit %u w c %u s %u:%llu:10000", &queue, &commands, &semaphore, &value) == 4) {
			CHECK(semaphore <= THREADS && value == ++signalled[semaphore], "line %d: %s", k + 1, r->lines[k]);
			if (owner[semaphore] == 0)
				owner[semaphore] = thread;
		} else if (sscanf(r->lines[k], "wait %c %u:%llu", &how, &semaphore, &value) == 3) {
			CHECK(semaphore <= THREADS && value == ++waited[semaphore] && value <= signalled[semaphore],
				"line %d: %s", k + 1, r->lines[k]);
		} else {
			CHECK(strncmp(r->lines[k], "submit", 6) != 0 && strncmp(r->lines[k], "wait", 4) != 0,
				"line %d: %s", k + 1, r->lines[k]);
			continue;
		}
		CHECK(owner[semaphore] == thread, "line %d: by thread %d: %s", k + 1, thread, r->lines[k]);
	}
	for (int s = 1; s <= semaphores; s++)
		CHECK(signalled[s] == ROUNDS && waited[s] == ROUNDS, "semaphore %d: %llu signals, %llu waits", s,
			(unsigned long long)signalled[s], (unsigned long long)waited[s]);
}

static void run(program *first, program *second)
{
	static worker workers[THREADS];
	for (int k = 0; k < THREADS; k++) {
		workers[k].p = k % 2 == 0 ? first : second;
		workers[k].timeline = program_timeline(workers[k].p);
	}
	for (int k = 0; k < THREADS; k++)
		pthread_create(&workers[k].thread, NULL, work, &workers[k]);
	for (int k = 0; k < THREADS; k++) {
		pthread_join(workers[k].thread, NULL);
		vkDestroySemaphore(workers[k].p->device, workers[k].timeline, NULL);
	}
}

int main(void)
{
	static record shared, own[2];
	record_begin(&shared, "");
	program first, second;
	program_open(&first, record_layer);
	program_open_again(&second, &first);
	run(&first, &second);
	program_close(&second);
	program_close(&first);
	record_read(&shared);
	examine(&shared, THREADS);
	int devices = 0;
	for (int k = 0; k < shared.count; k++)
		devices += strncmp(shared.lines[k], "device ", 7) == 0;
	CHECK(devices == 2, "%d devices", devices);

	record_begin(&own[0], "%d");
	program_open(&first, record_layer);
	program_open_again(&second, &first);
	run(&first, &second);
	program_close(&second);
	program_close(&first);
	for (int k = 0; k < 2; k++) { // numbers go on in a process
		snprintf(own[k].path, sizeof own[k].path, "/tmp/vkomp-record-%ld%d", (long)getpid(), k + 2);
		record_read(&own[k]);
		CHECK(own[k].count > 0 && strcmp(own[k].lines[0], "vkomp-order 1") == 0, "header of %s", own[k].path);
		examine(&own[k], THREADS / 2);
	}
	return program_result("test_record_threads");
}
