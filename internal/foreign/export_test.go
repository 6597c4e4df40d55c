package foreign

import "github.com/vkomp/vkomp/vk"

// HostRuns returns, for each semaphore of which the host waits to signal values, the last of them.
func (d *Device) HostRuns() map[vk.Semaphore]uint64 {
	runs := map[vk.Semaphore]uint64{}
	for _, seq := range d.all() {
		d.order.Lock()
		if seq.hostRun != nil {
			runs[seq.semaphore] = seq.hostRun.last
		}
		d.order.Unlock()
	}
	return runs
}
