// Vkomp-demo shows vkomp at work: it lists devices, shows what their memory is used
// for, runs samples, each a graph of target tasks, and graphs of many small tasks that
// assert what they read.
//
//	vkomp-demo devices [-json]
//	vkomp-demo memory [-n slices] [-device d|all] [-json]
//	vkomp-demo stress [-pattern p,…|all] [-width w] [-steps s] [-radix r] [-seed n] [-seeds n] [-tasks n] [-duration t]
//	                  [-kernel empty|compute|memory] [-mix host] [-placement finish|random] [-queues n] [-path p] [-device d]
//	                  [-clauses file] [-metg [-workers n]]
//	vkomp-demo run saxpy [-n elements] [-device d] [-verify] [-graph file] [-trace file] [-report file]
//	vkomp-demo run heat  [-n side] [-steps s] [-out picture.gif|.png] [-device d] [-verify] [-graph file] [-trace file] [-report file]
//	vkomp-demo run image [-n bands] [-in picture] [-out picture.png] [-device d] [-verify] [-graph file] [-trace file] [-report file]
//
// A sub-command is a file, stress is several; bands.go cuts rows into the pieces that tasks work
// on. Results go to standard output, messages and the progress bar to standard
// error; the exit status is 1 after any error.
package main
