// Vkomp-demo demonstrates vkomp: it lists devices, shows the use of their memory, and runs
// samples, each a graph of target tasks, and stress tests, which are graphs of many small tasks
// that check what they read. It measures vkomp beside plain Vulkan (docs/benchmarks.md).
//
//	vkomp-demo devices [-json] [-verbose]
//	vkomp-demo memory [-n slices] [-device d|all] [-json]
//	vkomp-demo stress [-pattern p,…|all] [-width w] [-steps s] [-radix r] [-seed n] [-seeds n] [-tasks n] [-duration t]
//	                  [-kernel empty|compute|memory] [-mix host] [-placement finish|random] [-queues n] [-path p] [-pinned] [-device d]
//	                  [-clauses file] [-metg [-workers n]]
//	vkomp-demo bench [-rows list] [-count n] [-quick] [-json] [-gobench file.txt] [-device d]
//	vkomp-demo cost log [-profile p] [-workgroup t]
//	vkomp-demo replay file [-verify] [-device d,…]
//	vkomp-demo interop [-rounds n] [-protocol explicit|implicit|both] [-device d]
//	vkomp-demo run saxpy [-n elements] [-device d] [-verify] [-graph file] [-trace file] [-report file]
//	vkomp-demo run heat  [-n side] [-steps s] [-bands n] [-out picture.gif|.png] [-device d] [-verify] [-graph file] [-trace file] [-report file]
//	vkomp-demo run image [-n bands] [-in picture] [-out picture.png] [-device d] [-verify] [-graph file] [-trace file] [-report file]
//
// Each sub-command is a file, and stress and bench are several; bands.go divides images into bands for
// tasks. Results go to standard output, messages and the progress bar to standard error. The
// exit status is 1 after any error. An interrupt ends the work, and a second one the process.
package main
