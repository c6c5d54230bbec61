package registry

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/attribute"
	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/model"
)

// A Compilation specifies an ONNX file that returns the map of a method with the outputs of a model.
type Compilation struct {
	Path   string // of the model
	Look   Look
	Method string   // attribute/grad-cam, or grad-cam
	Set    []string // the method's parameters, as name=value
	Target string   // the explained class; "" for the method's own parameter

	Preset      string // of the pixels that the file takes; "" if it takes the model's own input
	OwnInput    bool   // the file takes the model's own input, and the preset only says what pixels are there
	TargetInput bool   // the class is an input
	NoiseInput  bool   // the noise of methods that draw some is an input
	Batch       int    // the number of images that the file takes; 0 for any
	Seed        uint64 // of noise that is in the file
}

// A CompiledFile is the file, and what is known of it.
type CompiledFile struct {
	attribute.Compiled
	Method string // the stage
	Takes  string // what images the file takes
	Target string // what class its map explains
	Notes  []string

	compilation attribute.Compilation
	trial       *model.Trial
}

// The results of checks; their types are documented in package attribute.
type (
	CheckedFile   = attribute.CheckedFile
	FileDeviation = attribute.FileDeviation
)

// Compile compiles a method into a model's file, on a slot of the processor.
func Compile(ctx context.Context, slot stages.Slot, c Compilation) (out *CompiledFile, err error) {
	s, params, err := c.method()
	if err != nil {
		return nil, err
	}
	p := c.Look.params(c.Path)
	if err := p.Size.UnmarshalText([]byte(c.Look.Size)); err != nil {
		return nil, &stages.FieldError{Field: "size", Err: err}
	}
	if err := c.Look.check(); err != nil {
		return nil, err
	}
	if c.Preset != "" {
		if err := c.checkPreset(p); err != nil {
			return nil, err
		}
		p.Preset = c.Preset
	}
	t, err := model.NewTrial(ctx, *p)
	if err != nil {
		return nil, err
	}
	out = &CompiledFile{Method: s.Name, Takes: c.takes(t), Target: c.explained(s, params), Notes: t.Notes,
		trial: t, compilation: attribute.Compilation{Stage: s, Params: params, Model: t.Model(), Slot: slot,
			Fixed: c.Batch, Prepares: c.Preset != "" && !c.OwnInput, Prepared: c.Preset != "",
			TargetInput: c.TargetInput, NoiseInput: c.NoiseInput, Seed: c.Seed}}
	out.compilation.Notes = map[string]string{"runexp.method": s.Name, "runexp.input": out.Takes,
		"runexp.target": out.Target, "runexp.parameters": strings.Join(written(params), ", ")}
	out.Compiled, err = attribute.Compile(ctx, out.compilation)
	out.Notes = append(out.Notes, out.Remarks...)
	if err != nil {
		err = errors.Join(err, t.Close())
	}
	return out, err
}

// checkPreset refuses an unknown preset.
func (c Compilation) checkPreset(p *model.ONNXParams) error {
	for _, f := range stages.Fields(p) {
		if f.Name == "preset" && !slices.Contains(f.Choices, c.Preset) {
			return stages.BadName("preset", c.Preset, f.Choices, "%q is no preset: %s", c.Preset,
				strings.Join(f.Choices, ", "))
		}
	}
	return nil
}

// takes says what images the file takes.
func (c Compilation) takes(t *model.Trial) string {
	switch {
	case c.Preset == "":
		return "the model's own input: pixels prepared as the model was trained"
	case c.OwnInput:
		return "the model's own input: pixels prepared as preset " + c.Preset
	}
	return fmt.Sprintf("RGB pixels from 0 to 1, %d × %d; the file prepares them as preset %s", t.Spec.Height,
		t.Spec.Width, c.Preset)
}

// explained says what class the map explains.
func (c Compilation) explained(s *stages.Stage, params any) string {
	switch {
	case attribute.ClassFree(s):
		return "none: the map is the same for all classes"
	case c.TargetInput:
		return "the class on the input"
	}
	for _, f := range stages.Fields(params) {
		if f.Name == "target" {
			return reflect.ValueOf(params).Elem().FieldByIndex(f.Index).String()
		}
	}
	return ""
}

// method returns the stage and its parameters.
func (c Compilation) method() (*stages.Stage, any, error) {
	name := c.Method
	if !strings.Contains(name, "/") {
		name = "attribute/" + name
	}
	s, ok := Builtin().Lookup(name)
	if !ok || s.Output("maps") == nil || !strings.HasPrefix(s.Name, "attribute/") {
		return nil, nil, stages.BadName("method", c.Method, Compiled(), "%q is no attribution method: "+
			"\"runexp help methods\" lists them", c.Method)
	}
	params := s.NewParams()
	if !attribute.Compiles(params) {
		return nil, nil, &stages.FieldError{Field: "method", Err: notOneProgram(s)}
	}
	given := c.Set
	if c.Target != "" {
		given = append(slices.Clone(given), "target="+c.Target)
	}
	for _, text := range given {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, nil, &stages.FieldError{Field: "set",
				Err: fmt.Errorf("%q is no parameter and its value: write name=value", text)}
		}
		if err := setParam(params, name, value); err != nil {
			return nil, nil, err
		}
	}
	if v, ok := params.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return nil, nil, err
		}
	}
	return s, params, nil
}

// notOneProgram is the error of a method whose map isn't made by the model's graph alone.
func notOneProgram(s *stages.Stage) error {
	why := "it reads no model"
	if s.Passes != (stages.Passes{}) {
		why = fmt.Sprintf("it makes what the model runs on outside of the model's graph, or combines the "+
			"answers there (passes: %s)", s.Passes)
	}
	if own := attribute.WhyUncompiled(s.NewParams()); own != "" {
		why = own
	}
	return fmt.Errorf("%s isn't one program: %s; methods that are: %s", s.Name, why,
		strings.Join(Compiled(), ", "))
}

// Compiled returns the names of the methods that can be compiled, without their family.
func Compiled() (names []string) {
	for _, s := range Builtin().Family("attribute") {
		if s.Output("maps") != nil && attribute.Compiles(s.NewParams()) {
			names = append(names, strings.TrimPrefix(s.Name, "attribute/"))
		}
	}
	return names
}

// setParam sets a parameter to a value as an experiment writes it.
func setParam(params any, name, value string) error {
	fields := stages.Fields(params)
	i := slices.IndexFunc(fields, func(f stages.Field) bool { return f.Name == name })
	if i < 0 {
		var names []string
		for _, f := range fields {
			names = append(names, f.Name)
		}
		return stages.BadName("set", name, names, "the method has no parameter %q", name)
	}
	f := fields[i]
	wrong := func(format string, args ...any) error {
		return &stages.FieldError{Field: "set", Err: fmt.Errorf(name+": "+format, args...)}
	}
	to := reflect.ValueOf(params).Elem().FieldByIndex(f.Index)
	if text, ok := to.Addr().Interface().(encoding.TextUnmarshaler); ok && f.IsText() {
		if err := text.UnmarshalText([]byte(value)); err != nil {
			return wrong("%w", err)
		}
		return nil
	}
	switch to.Kind() {
	case reflect.String:
		stored, ok := f.Stored(value)
		if f.Choices != nil && !ok {
			return stages.BadName("set", value, f.Choices, "%s: %q is none of %s", name, value,
				strings.Join(f.Choices, ", "))
		}
		to.SetString(stored)
	case reflect.Bool:
		v, err := strconv.ParseBool(value)
		if err != nil {
			return wrong("%q is neither true nor false", value)
		}
		to.SetBool(v)
	case reflect.Int, reflect.Float64:
		v, err := numberOf(f, value)
		switch {
		case err != nil:
			return wrong("%w", err)
		case to.Kind() == reflect.Float64:
			to.SetFloat(v)
		case v != float64(int64(v)):
			return wrong("%q is no whole number", value)
		default:
			to.SetInt(int64(v))
		}
	default:
		return wrong("a list can't be set here")
	}
	return nil
}

// numberOf reads a number within the bounds of a parameter.
func numberOf(f stages.Field, value string) (float64, error) {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", value)
	}
	low, lowErr := strconv.ParseFloat(f.Min, 64)
	high, highErr := strconv.ParseFloat(f.Max, 64)
	if math.IsNaN(v) || lowErr == nil && v < low || highErr == nil && v > high {
		return 0, fmt.Errorf("%s is not between %s and %s", value, f.Min, f.Max)
	}
	return v, nil
}

// written returns the parameters as name=value.
func written(params any) (list []string) {
	for _, f := range stages.Fields(params) {
		v := reflect.ValueOf(params).Elem().FieldByIndex(f.Index)
		list = append(list, f.Name+"="+f.Written(fmt.Sprint(v.Interface())))
	}
	return list
}

// Check runs the file beside the method on some images of a folder, or on drawn ones if dir is "".
func (f *CompiledFile) Check(ctx context.Context, dir string) (out CheckedFile, err error) {
	var images [][]byte
	if dir != "" {
		if images, err = imagesOf(ctx, f.compilation.Slot, dir, f.trial.Spec.Height,
			f.trial.Spec.Width); err != nil {
			return out, err
		}
	}
	return attribute.Check(ctx, f.compilation, f.Compiled, images)
}

// Tolerance is the largest deviation of a map that the last bit of a number may make.
func (f *CompiledFile) Tolerance() float64 { return f.compilation.Stage.Tolerance }

// Close releases the model.
func (f *CompiledFile) Close() error { return f.trial.Close() }

// checkedImages is the number of images of a folder on which a file is checked.
const checkedImages = 16

// imagesOf reads the first images of a folder at a size.
func imagesOf(ctx context.Context, slot stages.Slot, dir string, height, width int) (images [][]byte,
	err error) {
	p := dataset.Folder.NewParams().(*dataset.FolderParams)
	p.Path, p.Size.H, p.Size.W = filepath.Clean(dir), height, width
	sources, err := dataset.Folder.Sources(p, nil)
	if err != nil {
		return nil, err
	}
	e := &stages.Env{Stage: &dataset.Folder, Slot: slot, OnWarn: func(stages.Warning) {}}
	for i := range sources[:min(len(sources), checkedImages)] {
		id := sources[i].ID
		e.Calls = append(e.Calls, stages.Call{Item: stages.Item{ID: id, Origin: id}, Source: &sources[i]})
	}
	if err := dataset.Folder.Run(ctx, p, e); err != nil {
		return nil, err
	}
	for _, o := range e.Outputs {
		if o.Port == "images" {
			images = append(images, o.Data)
		}
	}
	if len(images) == 0 {
		return nil, fmt.Errorf("%s has no images", dir)
	}
	return images, nil
}
