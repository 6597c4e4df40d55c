// The discrete layer: each profile's heaps and types, what needs which types, memory that the
// host does not cache (poison for its reads, device accesses see what was flushed), memory that
// it caches, heaps that end, and what ends the program. All that is legal runs with the
// validation layer above and again with it below; it must have nothing to say.
#define _GNU_SOURCE
#include "program.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const bare[] = { "VK_LAYER_VKOMP_discrete", NULL };
static const char *const validated[] = {
	"VK_LAYER_KHRONOS_validation", "VK_LAYER_VKOMP_discrete", NULL,
};
static const char *const validated_below[] = {
	"VK_LAYER_VKOMP_discrete", "VK_LAYER_KHRONOS_validation", NULL,
};

enum {
	LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
	VISIBLE = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
	COHERENT = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
	CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
	BYTES = 4096,
};

// The types of the profiles whose memory is not the host's.
static const VkMemoryPropertyFlags window = LOCAL | VISIBLE, uncached = VISIBLE,
	cached = VISIBLE | COHERENT | CACHED;

static VkPhysicalDeviceMemoryProperties memory_of(program *p)
{
	VkPhysicalDeviceMemoryProperties m;
	vkGetPhysicalDeviceMemoryProperties(p->physical, &m);
	return m;
}

// The type of just these flags, or -1.
static int type_of(program *p, VkMemoryPropertyFlags flags)
{
	VkPhysicalDeviceMemoryProperties m = memory_of(p);
	for (uint32_t t = 0; t < m.memoryTypeCount; t++)
		if (m.memoryTypes[t].propertyFlags == flags)
			return (int)t;
	return -1;
}

static VkResult allocate(program *p, int type, VkDeviceSize bytes, VkDeviceMemory *out)
{
	VkMemoryAllocateInfo info = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
		.allocationSize = bytes,
		.memoryTypeIndex = (uint32_t)type,
	};
	return vkAllocateMemory(p->device, &info, NULL, out);
}

// A buffer in memory of a type, mapped where the host can.
static program_buffer buffer_in(program *p, VkMemoryPropertyFlags flags)
{
	program_buffer b = { .bytes = BYTES };
	VkBufferCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
		.size = BYTES,
		.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
	};
	MUST(vkCreateBuffer(p->device, &info, NULL, &b.handle));
	VkMemoryRequirements needs;
	vkGetBufferMemoryRequirements(p->device, b.handle, &needs);
	MUST(allocate(p, type_of(p, flags), needs.size, &b.memory));
	MUST(vkBindBufferMemory(p->device, b.handle, b.memory, 0));
	if ((flags & VISIBLE) != 0)
		MUST(vkMapMemory(p->device, b.memory, 0, VK_WHOLE_SIZE, 0, (void **)&b.words));
	return b;
}

// The second half of what is flushed is in two ranges, which Vulkan allows.
static void flush(program *p, program_buffer *b, VkDeviceSize offset, VkDeviceSize bytes)
{
	VkMappedMemoryRange all = {
		.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
		.memory = b->memory,
		.offset = offset,
		.size = bytes,
	};
	VkMappedMemoryRange half = all;
	half.offset += bytes / 2;
	half.size -= bytes / 2;
	MUST(vkFlushMappedMemoryRanges(p->device, 2, (VkMappedMemoryRange[]){ all, half }));
}

static void invalidate(program *p, program_buffer *b)
{
	VkMappedMemoryRange r = {
		.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
		.memory = b->memory,
		.size = VK_WHOLE_SIZE,
	};
	MUST(vkInvalidateMappedMemoryRanges(p->device, 1, &r));
}

static void run(program *p, VkCommandBuffer c)
{
	program_barrier(c);
	program_end(c);
	VkSemaphore done = program_timeline(p);
	program_point signal = { done, 1 };
	MUST(program_submit(&p->queues[0], c, 0, NULL, 1, &signal, VK_NULL_HANDLE));
	CHECK(program_reaches(p, done, 1, 30000000000u), "the submission is not complete");
	vkDestroySemaphore(p->device, done, NULL);
}

// Copies a whole buffer to another on the device.
static void copy(program *p, program_buffer *from, program_buffer *to)
{
	VkCommandBuffer c = program_begin(p, &p->queues[0]);
	VkBufferCopy region = { .size = BYTES };
	vkCmdCopyBuffer(c, from->handle, to->handle, 1, &region);
	run(p, c);
}

static void fill(program *p, program_buffer *b, uint32_t value)
{
	VkCommandBuffer c = program_begin(p, &p->queues[0]);
	vkCmdFillBuffer(c, b->handle, 0, BYTES, value);
	run(p, c);
}

// What the host writes to memory that it does not cache reaches the device where it is flushed,
// and there alone; what it reads there is neither its own nor the device's.
static void reads_are_poison(program *p, VkMemoryPropertyFlags flags)
{
	program_buffer b = buffer_in(p, flags), back = buffer_in(p, cached);
	fill(p, &b, 7);
	for (uint32_t k = 0; k < BYTES / 4; k++)
		if (b.words[k] == 7 || b.words[k] == 0) {
			CHECK(false, "word %u of what the device wrote is read as %u", k, b.words[k]);
			break;
		}
	unsigned char *bytes = (unsigned char *)b.words;
	for (uint32_t k = 0; k < BYTES; k++)
		bytes[k] = (unsigned char)k;
	CHECK(bytes[5] == 5, "what is not flushed is changed");
	flush(p, &b, 3, 10);
	CHECK(bytes[5] != 5 && bytes[13] == 13, "byte 5 is %u after its flush, byte 13 %u", bytes[5], bytes[13]);
	copy(p, &b, &back);
	const unsigned char *got = (unsigned char *)back.words;
	for (uint32_t k = 0; k < BYTES; k++) {
		unsigned char want = k >= 3 && k < 13 ? (unsigned char)k : k % 4 == 0 ? 7 : 0;
		if (got[k] != want) {
			CHECK(false, "byte %u on the device is %u, want %u", k, got[k], want);
			break;
		}
	}
	invalidate(p, &b);
	CHECK(bytes[13] != 13 && bytes[5] != 5, "what is invalidated can be read");
	program_buffer_free(p, &b);
	program_buffer_free(p, &back);
}

static void cached_memory_is_the_drivers(program *p)
{
	program_buffer b = buffer_in(p, cached), back = buffer_in(p, cached);
	for (uint32_t k = 0; k < BYTES / 4; k++)
		b.words[k] = k;
	copy(p, &b, &back);
	CHECK(memcmp(b.words, back.words, BYTES) == 0, "another copy than what was written");
	fill(p, &back, 9);
	CHECK(back.words[0] == 9 && back.words[BYTES / 4 - 1] == 9, "the host does not see a fill");
	program_buffer_free(p, &b);
	program_buffer_free(p, &back);
}

// The profile's memory, by both calls.
static void memory_is_that_of_the_profile(program *p, VkPhysicalDeviceType kind, uint32_t types,
	uint32_t heaps, VkDeviceSize last_heap, VkDeviceSize atom)
{
	VkPhysicalDeviceMemoryProperties one = memory_of(p);
	VkPhysicalDeviceMemoryProperties2 two = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2 };
	vkGetPhysicalDeviceMemoryProperties2(p->physical, &two);
	CHECK(memcmp(&one, &two.memoryProperties, sizeof one) == 0, "the two calls disagree");
	CHECK(one.memoryTypeCount == types && one.memoryHeapCount == heaps, "%u types in %u heaps",
		one.memoryTypeCount, one.memoryHeapCount);
	CHECK(one.memoryHeaps[heaps - 1].size == last_heap, "the last heap has %llu bytes",
		(unsigned long long)one.memoryHeaps[heaps - 1].size);
	VkPhysicalDeviceProperties properties;
	VkPhysicalDeviceProperties2 properties2 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2 };
	vkGetPhysicalDeviceProperties(p->physical, &properties);
	vkGetPhysicalDeviceProperties2(p->physical, &properties2);
	CHECK(properties.deviceType == kind && properties2.properties.deviceType == kind, "a device of kind %d",
		properties.deviceType);
	CHECK(properties.limits.nonCoherentAtomSize == atom, "an atom of %llu bytes",
		(unsigned long long)properties.limits.nonCoherentAtomSize);
}

// Memory with a handle is none that the host maps of the device's own.
static void exported_memory_is_not_in_the_window(program *p)
{
	VkExternalMemoryBufferCreateInfo external = {
		.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
		.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
	};
	VkBufferCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
		.size = BYTES,
		.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT,
	};
	VkBuffer plain, exported;
	MUST(vkCreateBuffer(p->device, &info, NULL, &plain));
	info.pNext = &external;
	MUST(vkCreateBuffer(p->device, &info, NULL, &exported));
	VkMemoryRequirements needs;
	vkGetBufferMemoryRequirements(p->device, plain, &needs);
	CHECK(needs.memoryTypeBits == 0x1f, "a buffer lives in types 0x%x", needs.memoryTypeBits);
	VkBufferMemoryRequirementsInfo2 of = { .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2, .buffer = exported };
	VkMemoryRequirements2 needs2 = { .sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2 };
	vkGetBufferMemoryRequirements2(p->device, &of, &needs2);
	CHECK(needs2.memoryRequirements.memoryTypeBits == 0xf, "a buffer with a handle lives in types 0x%x",
		needs2.memoryRequirements.memoryTypeBits);
	vkDestroyBuffer(p->device, plain, NULL);
	vkDestroyBuffer(p->device, exported, NULL);
}

// A heap of 1 MiB: what is freed can be allocated again.
static void heaps_end(program *p, VkMemoryPropertyFlags flags)
{
	VkDeviceMemory first, second;
	MUST(allocate(p, type_of(p, flags), 768 << 10, &first));
	VkResult r = allocate(p, type_of(p, flags), 512 << 10, &second);
	CHECK(r == VK_ERROR_OUT_OF_DEVICE_MEMORY && second == VK_NULL_HANDLE, "beyond the heap: %d", r);
	vkFreeMemory(p->device, first, NULL);
	r = allocate(p, type_of(p, flags), 512 << 10, &second);
	CHECK(r == VK_SUCCESS, "within the heap: %d", r);
	if (r == VK_SUCCESS)
		vkFreeMemory(p->device, second, NULL);
}

// Opens a device of a profile, calls f, and wants no message.
static void with(const char *profile, const char *const *layers, void (*f)(program *))
{
	setenv("VKOMP_DISCRETE_PROFILE", profile, 1);
	program p;
	program_open(&p, layers);
	f(&p);
	CHECK(p.messages == 0, "%s: %u messages", profile, p.messages);
	program_close(&p);
}

static void bar(program *p)
{
	memory_is_that_of_the_profile(p, VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 5, 2, (VkDeviceSize)16 << 30, 1);
	reads_are_poison(p, window);
	reads_are_poison(p, uncached);
	cached_memory_is_the_drivers(p);
	exported_memory_is_not_in_the_window(p);
}

static void smallbar(program *p)
{
	memory_is_that_of_the_profile(p, VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 5, 3, 1 << 20, 1);
	reads_are_poison(p, window);
	heaps_end(p, window);
}

static void nobar(program *p)
{
	memory_is_that_of_the_profile(p, VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 4, 2, (VkDeviceSize)16 << 30, 1);
	CHECK(type_of(p, window) < 0, "there is a window");
	reads_are_poison(p, uncached);
}

static void nocached(program *p)
{
	memory_is_that_of_the_profile(p, VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 4, 3, 1 << 20, 1);
	CHECK(type_of(p, cached) < 0, "memory is cached");
	// Results come back through memory that the host sees and does not cache.
	program_buffer b = buffer_in(p, VISIBLE | COHERENT);
	fill(p, &b, 9);
	CHECK(b.words[0] == 9, "the host does not see a fill");
	program_buffer_free(p, &b);
}

static void integrated(program *p)
{
	memory_is_that_of_the_profile(p, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, 3, 1, (VkDeviceSize)64 << 20, 1);
	program_buffer b = buffer_in(p, LOCAL | VISIBLE), back = buffer_in(p, LOCAL | cached);
	fill(p, &b, 7);
	CHECK(b.words[0] != 7, "the host sees what it does not cache");
	copy(p, &b, &back);
	CHECK(back.words[0] == 7, "the host does not see what it caches");
	program_buffer_free(p, &b);
	program_buffer_free(p, &back);
}

// What the host writes to cached memory that is not coherent reaches the device where it is flushed, and
// what the device writes reaches the host where it is invalidated.
static void incoherent(program *p)
{
	memory_is_that_of_the_profile(p, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, 3, 1, (VkDeviceSize)64 << 20, 64);
	program_buffer b = buffer_in(p, LOCAL | VISIBLE | CACHED), coherent = buffer_in(p, LOCAL | VISIBLE | COHERENT);
	fill(p, &b, 7);
	for (uint32_t k = 0; k < BYTES / 4; k++)
		b.words[k] = k + 100;
	VkMappedMemoryRange second = {
		.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
		.memory = b.memory,
		.offset = 64,
		.size = 64,
	};
	MUST(vkFlushMappedMemoryRanges(p->device, 1, &second));
	CHECK(b.words[16] == 116 && b.words[0] == 100, "what is cached is changed by a flush");
	copy(p, &b, &coherent);
	for (uint32_t k = 0; k < BYTES / 4; k++) {
		uint32_t want = k >= 16 && k < 32 ? k + 100 : 7;
		if (coherent.words[k] != want) {
			CHECK(false, "word %u on the device is %u, want %u", k, coherent.words[k], want);
			break;
		}
	}
	fill(p, &b, 9);
	CHECK(b.words[16] == 116, "the host sees what it has not invalidated");
	MUST(vkInvalidateMappedMemoryRanges(p->device, 1, &second));
	CHECK(b.words[16] == 9 && b.words[31] == 9, "the host does not see what it has invalidated");
	CHECK(b.words[15] == 115 && b.words[32] == 132, "an invalidation changes what is beside it");
	program_buffer_free(p, &b);
	program_buffer_free(p, &coherent);
}

static void maps_the_devices_own_memory(program *p)
{
	VkDeviceMemory m;
	void *at;
	MUST(allocate(p, type_of(p, LOCAL), BYTES, &m));
	vkMapMemory(p->device, m, 0, VK_WHOLE_SIZE, 0, &at);
}

static void flushes_beyond_the_end(program *p)
{
	program_buffer b = buffer_in(p, window);
	flush(p, &b, BYTES / 2, (VkDeviceSize)1 << 20);
}

static void invalidates_half_a_unit(program *p)
{
	program_buffer b = buffer_in(p, LOCAL | VISIBLE | CACHED);
	VkMappedMemoryRange half = {
		.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
		.memory = b.memory,
		.size = 32,
	};
	vkInvalidateMappedMemoryRanges(p->device, 1, &half);
}

// What ends the program with SIGABRT, in a process of its own.
static void dies(const char *profile, void (*f)(program *))
{
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		with(profile, bare, f);
		_exit(0);
	}
	int status = 0;
	waitpid(child, &status, 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "the program ends with status %d", status);
}

int main(void)
{
	program_environment("VKOMP_DISCRETE_MIB", 64);
	program_environment("VKOMP_DISCRETE_BAR_KIB", 1024);
	dies("bar", maps_the_devices_own_memory);
	dies("bar", flushes_beyond_the_end);
	dies("incoherent", invalidates_half_a_unit);
	const char *const *const layers[] = { bare, validated, validated_below };
	for (size_t k = 0; k < sizeof layers / sizeof layers[0]; k++) {
		with("bar", layers[k], bar);
		with("smallbar", layers[k], smallbar);
		with("nobar", layers[k], nobar);
		with("nocached", layers[k], nocached);
		with("integrated", layers[k], integrated);
		with("incoherent", layers[k], incoherent);
	}
	return program_result("test_discrete");
}
