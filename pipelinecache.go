package vkomp

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/vkomp/vkomp/internal/pipelinefile"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/vk"
)

// noPipelineCache is the value of Options.PipelineCache for no file.
const noPipelineCache = "off"

// pipelineCache returns the folder of the files in which drivers' pipeline caches are kept, "" for
// none, and why.
func (o *Options) pipelineCache() (folder, reason string) {
	const variable = "VKOMP_PIPELINE_CACHE"
	set, by := strings.TrimSpace(o.PipelineCache), "Options.PipelineCache"
	if set == "" {
		_, set = o.environment().get(variable)
		by = variable
	}
	switch {
	case strings.EqualFold(set, noPipelineCache):
		return "", fmt.Sprintf("%s is %s", by, set)
	case set != "":
		// The program may change its working folder before the file is written.
		folder, err := filepath.Abs(set)
		if err != nil {
			return "", fmt.Sprintf("%s is %s: %v", by, set, err)
		}
		return folder, by
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Sprintf("the user has no folder for caches: %v", err)
	}
	return filepath.Join(user, "vkomp"), "in the user's folder for caches"
}

// pipelineFile returns the file with the device's pipeline cache, nil for none, and why.
func (d *device) pipelineFile() (file *pipelinefile.File, reason string) {
	folder, reason := d.rt.icvs.pipelineFolder, d.rt.icvs.pipelineReason
	if folder == "" {
		return nil, reason
	}
	p := d.physical.Properties()
	return pipelinefile.In(folder, pipelinefile.Identity{Vendor: p.VendorID, Device: p.DeviceID, Driver: p.DriverVersion, UUID: p.PipelineCacheUUID}), reason
}

// pipelineDecision says where the device's compiled pipelines are kept.
func (d *device) pipelineDecision() Decision {
	file, reason := d.pipelineFile()
	if file == nil {
		return Decision{"compiled pipelines", "until the device is closed", reason}
	}
	return Decision{"compiled pipelines", "in " + file.Path(), reason}
}

// readPipelines returns the contents of the device's file, nil if there is none or it cannot be used.
func (d *device) readPipelines() []byte {
	file, _ := d.pipelineFile()
	if file == nil {
		return nil
	}
	data, err := file.Read()
	if err != nil {
		d.rt.log.Warn("compiled pipelines of earlier runs are not used", "device", d.number, "reason", err)
		return nil
	}
	return data
}

// savedDevice is a device that is open, and what has to be done before it is closed.
type savedDevice struct {
	sched.Device
	d      *device
	vulkan *vk.Device
	// read is what the device's pipeline cache had at first.
	read []byte
}

// Close implements sched.Device: it saves the compiled pipelines, and destroys the semaphores of the
// interop objects. Failing to save is not an error of the program; the log of a device that is lost
// has that already.
func (s savedDevice) Close() error {
	if err := s.savePipelines(); err != nil && !errors.Is(err, vk.ErrDeviceLost) {
		s.d.rt.log.Warn("compiled pipelines are not kept", "device", s.d.number, "reason", err)
	}
	var err error
	if objects := s.d.interop(); objects != nil {
		err = objects.Free()
	}
	return errors.Join(err, s.Device.Close())
}

// savePipelines writes the device's pipeline cache to its file, together with what other programs have
// written there meanwhile.
func (s savedDevice) savePipelines() error {
	file, _ := s.d.pipelineFile()
	if file == nil {
		return nil
	}
	now, err := file.Read()
	if err != nil && !errors.Is(err, pipelinefile.ErrInvalid) {
		return err
	}
	if s.d.physical.Properties().CheckPipelineCache(now) != nil {
		now = nil // it is replaced
	}
	var others []byte
	if !bytes.Equal(now, s.read) {
		others = now
	}
	data, err := s.vulkan.PipelineCacheData(others)
	if err == nil && len(data) > pipelinefile.MaxBytes {
		data, err = s.vulkan.PipelineCacheData(nil)
	}
	if err != nil || bytes.Equal(data, now) {
		return err
	}
	return file.Write(data)
}
