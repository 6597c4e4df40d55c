// Package pipelinefile keeps what a driver has compiled in files, so that a program that runs again
// need not compile its kernels again. It is for vkomp itself and promises nothing to other importers.
//
// A file has the contents of a VkPipelineCache of one device and driver. Drivers take such data as it
// is and are known to crash on damaged data, so a file begins with a header of its own:
//
//	bytes  what
//	8      "vkompPC1", the format
//	28     the identity of device and driver, as Identity has it, numbers with the low byte first
//	8      the number of bytes of data
//	32     the SHA-256 of the identity and the data
//	…      the data
//
// Whoever can write the file can choose what the driver loads, so the folder must belong to the user
// and be writable by nobody else. A file is replaced as a whole: programs that write it at the same
// time leave what one of them wrote.
package pipelinefile
