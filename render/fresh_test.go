package render

import "reflect"

// scribble overwrites what a value leads to: what pointers point at, and every element of every map
// and slice. Where it shares memory with another value, that one shows it.
func scribble(v reflect.Value) {
	switch kind := v.Kind(); {
	case kind == reflect.Interface:
		scribble(v.Elem())
	case kind == reflect.Pointer && !v.IsNil():
		scribble(v.Elem())
		if v.Elem().Kind() != reflect.Struct {
			v.Elem().SetZero()
		}
	case kind == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				scribble(v.Field(i))
			}
		}
	case kind == reflect.Slice:
		for i := range v.Len() {
			scribble(v.Index(i))
			v.Index(i).SetZero()
		}
	case kind == reflect.Map:
		v.Clear()
	}
}
