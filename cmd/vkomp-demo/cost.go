package main

import (
	"fmt"
	"os"
	"time"

	"github.com/vkomp/vkomp/tests/order"
	"github.com/vkomp/vkomp/tests/order/cost"
)

type costCommand struct {
	Log       string        `arg:"" help:"Log of the recording layer."`
	Profile   string        `name:"profile" placeholder:"P" default:"h100" help:"What things cost: h100, an NVIDIA H100 (default h100)."`
	Workgroup time.Duration `name:"workgroup" placeholder:"T" help:"What a workgroup of a kernel takes, such as 20us, at most 1h (default 0: kernels cost what an empty one does)."`
}

// costWorkgroupMost is more than a device lets any workgroup take.
const costWorkgroupMost = time.Hour

// Run prints what a recorded run would cost on a device, and what that consists of.
func (c *costCommand) Run(sh *shell) error {
	profile, err := cost.Named(c.Profile)
	if err != nil {
		return fmt.Errorf("-profile: %w", err)
	}
	if c.Workgroup < 0 || c.Workgroup > costWorkgroupMost {
		return fmt.Errorf("-workgroup %v is out of range: 0 to %v", c.Workgroup, costWorkgroupMost)
	}
	log, err := os.Open(c.Log)
	if err != nil {
		return err
	}
	defer log.Close()
	run, err := order.Read(log)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Log, err)
	}
	report, err := cost.Of(run, cost.Options{Profile: profile, Workgroup: c.Workgroup})
	if err != nil {
		return fmt.Errorf("%s: %w", c.Log, err)
	}
	return report.Print(sh.stdout)
}
