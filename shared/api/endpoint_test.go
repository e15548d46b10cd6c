package api

import (
	"reflect"
	"testing"
)

func TestACloneHasAllPortsAndBuildsItsOwnDomains(t *testing.T) {
	t.Parallel()
	p := &Ports{}
	v := reflect.ValueOf(p).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.Kind() == reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case f.Kind() == reflect.Func:
			f.Set(reflect.MakeFunc(f.Type(), nil))
		case f.CanInt():
			f.SetInt(1)
		}
	}
	build := func(p *Ports) *Ports { return p }
	if Domain(p, build) != p || Domain(p, func(*Ports) *Ports { return nil }) != p {
		t.Error("the domain is not built once")
	}
	c := p.Clone()
	if Domain(c, build) != c {
		t.Error("the clone has the other's domain")
	}
	for i := range v.NumField() {
		if f := reflect.ValueOf(c).Elem().Field(i); f.IsZero() != v.Field(i).IsZero() && v.Type().Field(i).IsExported() {
			t.Errorf("the clone has no %s", v.Type().Field(i).Name)
		}
	}
}
