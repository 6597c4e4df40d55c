package vkomp_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/vk"
)

func TestErrorsOfVulkanMatchExportedOnes(t *testing.T) {
	for _, c := range [][2]error{
		{vk.ErrInvalid, vkomp.ErrInvalidArgument},
		{vk.ErrClosed, vkomp.ErrClosed}, // a call that is under way when its device is closed
		{vk.ErrUnsupported, vkomp.ErrUnsupported},
		{vk.ErrDeviceLost, vkomp.ErrDeviceLost},
		{vk.ErrOutOfMemory, vkomp.ErrOutOfMemory},
	} {
		if err := vkomp.VulkanError(fmt.Errorf("%w: why", c[0])); !errors.Is(err, c[0]) || !errors.Is(err, c[1]) {
			t.Errorf("%v matches %v: %v, matches %v: %v", err, c[0], errors.Is(err, c[0]), c[1], errors.Is(err, c[1]))
		}
	}
	if err := vkomp.VulkanError(nil); err != nil {
		t.Error(err)
	}
}
