package vkomp

import (
	"reflect"
	"testing"

	"github.com/vkomp/vkomp/vk"
)

// Each feature that a program enables is passed to package vk under its own name.
func TestAdoptedFeaturesAreVulkansOfTheirNames(t *testing.T) {
	var a Adoption
	features := reflect.ValueOf(&a.Features).Elem()
	for i := range features.NumField() {
		name := features.Type().Field(i).Name
		features.SetZero()
		features.Field(i).SetBool(true)
		var want vk.Features
		field := reflect.ValueOf(&want).Elem().FieldByName(name)
		if !field.IsValid() {
			t.Errorf("vk knows no feature %s", name)
			continue
		}
		field.SetBool(true)
		if got := a.description().Features; got != want {
			t.Errorf("%s becomes %+v", name, got)
		}
	}
}
