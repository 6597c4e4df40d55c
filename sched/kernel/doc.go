// Package kernel reads compute shaders: what a kernel needs of a launch, whether arguments
// and a range fit it and a device, how the range becomes dispatches, and what its pipeline is
// made of. It calls no device. It is for this repository alone and promises nothing to others.
package kernel
