// Package kernel analyses compute shaders: which arguments a kernel takes, whether arguments and
// a range fit it and a device, into which dispatches the range is divided, and how its pipeline
// is described. It calls no device. It is internal to this module.
package kernel
