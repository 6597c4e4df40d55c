package sched

// Access reports what the kernel does to the memory of its k-th buffer, as far as its
// instructions say: one that it leaves alone it neither reads nor writes.
func (k *Kernel) Access(i int) (reads, writes bool) {
	for _, b := range k.entry.Bindings {
		if int(b.Binding) == i {
			return b.Read && !b.NonReadable, b.Written && !b.NonWritable
		}
	}
	return false, false
}
