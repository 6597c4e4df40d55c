package vkomp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
)

func TestDebugSettingsThatAreNoneAreRefused(t *testing.T) {
	for value, says := range map[string]string{
		"": "", " ": "", "placement=finish": "", "placement=random, seed=18446744073709551615": "",
		"placement=finish,placement=random": "",
		"queues=7":                          "want settings of placement, seed, late and path",
		"placement=random,":                 "want settings",
		"placement":                         "want finish or random for placement",
		"placement=randomly":                "want finish or random for placement",
		" PLACEMENT = Random , Seed = 7 ":   "",
		"late=1,seed=2":                     "",
		"late=":                             "want a number of bytes for late",
		"path=general":                      "",
		"path=general,path=any":             "",
		"path=general,path=":                "want general or any for path",
		"seed=-1":                           "want a non-negative integer for seed",
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
