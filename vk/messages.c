#include "vko.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#include <windows.h>
typedef SRWLOCK vko_lock;
static void lock_init(vko_lock *l) { InitializeSRWLock(l); }
static void lock_destroy(vko_lock *l) { (void)l; }
static void lock(vko_lock *l) { AcquireSRWLockExclusive(l); }
static void unlock(vko_lock *l) { ReleaseSRWLockExclusive(l); }
#else
#include <pthread.h>
typedef pthread_mutex_t vko_lock;
static void lock_init(vko_lock *l) { pthread_mutex_init(l, NULL); }
static void lock_destroy(vko_lock *l) { pthread_mutex_destroy(l); }
static void lock(vko_lock *l) { pthread_mutex_lock(l); }
static void unlock(vko_lock *l) { pthread_mutex_unlock(l); }
#endif

struct vko_messages {
	vko_lock lock; // guards all below
	vko_message *first, **last;
	uint32_t count;
	uint64_t dropped;
};

vko_messages *vko_messages_create(void)
{
	vko_messages *m = calloc(1, sizeof *m);
	if (m == NULL)
		return NULL;
	lock_init(&m->lock);
	m->last = &m->first;
	return m;
}

void vko_messages_destroy(vko_messages *m)
{
	if (m == NULL)
		return;
	vko_messages_free(m->first);
	lock_destroy(&m->lock);
	free(m);
}

void vko_messages_free(vko_message *list)
{
	while (list != NULL) {
		vko_message *next = list->next;
		free(list);
		list = next;
	}
}

vko_message *vko_messages_take(vko_messages *m, uint64_t *dropped)
{
	lock(&m->lock);
	vko_message *list = m->first;
	*dropped = m->dropped;
	m->first = NULL;
	m->last = &m->first;
	m->count = 0;
	m->dropped = 0;
	unlock(&m->lock);
	return list;
}

uint32_t VKO_CALL vko_messages_heard(uint32_t severity, uint32_t types,
	const vkoDebugUtilsMessengerCallbackDataEXT *data, void *messages)
{
	vko_messages *m = messages;
	const char *name = data->pMessageIdName != NULL ? data->pMessageIdName : "";
	const char *text = data->pMessage != NULL ? data->pMessage : "";
	size_t name_size = strlen(name) + 1, text_size = strlen(text) + 1;
	vko_message *e = malloc(sizeof *e + name_size + text_size);
	if (e != NULL) {
		char *strings = (char *)(e + 1);
		memcpy(strings, name, name_size);
		memcpy(strings + name_size, text, text_size);
		*e = (vko_message){
			.severity = severity,
			.types = types,
			.number = data->messageIdNumber,
			.name = strings,
			.text = strings + name_size,
		};
	}
	lock(&m->lock);
	if (e != NULL && m->count < VKO_MESSAGES_MAX) {
		*m->last = e;
		m->last = &e->next;
		m->count++;
		e = NULL;
	} else {
		m->dropped++;
	}
	unlock(&m->lock);
	free(e);
	return 0; // never abort the call that the message is about
}

int32_t vko_fail(vko_fault *fault, const char *call, int32_t result, const char *format, ...)
{
	fault->call = call;
	fault->result = result;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(fault->detail, sizeof fault->detail, format, arguments);
	va_end(arguments);
	return 1;
}

int32_t vko_refuse(vko_fault *fault, const char *format, ...)
{
	fault->call = NULL;
	fault->result = 0;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(fault->detail, sizeof fault->detail, format, arguments);
	va_end(arguments);
	return 1;
}
