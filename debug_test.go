package vkomp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
)

func TestDebugSettingsThatAreNoneAreRefused(t *testing.T) {
	for value, says := range map[string]string{
		"": "", " ": "", "pushdescriptors=1": "", "pushdescriptors=0, syncchecks=0 ,placement=random,seed=18446744073709551615": "",
		"placement=finish,placement=random": "",
		"queues=7":                          "want settings of pushdescriptors, syncchecks, placement and seed",
		"placement=random,":                 "want settings",
		"placement":                         "want finish or random for placement",
		"placement=Random":                  "want finish or random for placement",
		"syncchecks=2":                      "want 1 or 0 for syncchecks",
		"seed=-1":                           "want a non-negative integer for seed",
		"pushdescriptors=":                  "want 1 or 0 for pushdescriptors",
	} {
		rt, err := vkomp.Open(vkomp.Options{LookupEnv: environment("VKOMP_DEBUG", value, "OMP_TARGET_OFFLOAD", "disabled")})
		if err == nil {
			must(t, rt.Close())
		}
		switch {
		case says == "" && err != nil:
			t.Errorf("%q: %v", value, err)
		case says != "" && (!errors.Is(err, vkomp.ErrInvalidArgument) || !strings.Contains(err.Error(), "VKOMP_DEBUG") || !strings.Contains(err.Error(), says)):
			t.Errorf("%q: got %v, want %q", value, err, says)
		}
	}
}
