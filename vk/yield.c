#include "vko.h"

#if defined(_WIN32)

#include <windows.h>

void vko_yield(void) { SwitchToThread(); }

#else

#include <sched.h>

void vko_yield(void) { sched_yield(); }

#endif
