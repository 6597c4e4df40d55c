package foreign

import "github.com/vkomp/vkomp/vk"

// HostRuns returns, for each semaphore of which the host waits to signal values that follow one
// another, the first and the last of them.
func (d *Device) HostRuns() map[vk.Semaphore][2]uint64 {
	runs := map[vk.Semaphore][2]uint64{}
	for _, seq := range d.all() {
		d.order.Lock()
		if run := seq.hostRun; run != nil {
			runs[seq.semaphore] = [2]uint64{run.first, run.last}
		}
		d.order.Unlock()
	}
	return runs
}
