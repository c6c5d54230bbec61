package modelfile

import "slices"

// A Preset is a common preprocessing of images.
type Preset struct {
	Name  string
	Order string
	Scale float64
	Mean  []float64 // red, green, blue, after scaling
	Std   []float64
}

// Presets lists the presets, sorted by name.
func Presets() []Preset {
	return []Preset{
		// Caffe's nets: the mean pixel of ImageNet, rounded, in BGR.
		{"caffe-bgr", BGR, 255, []float64{123, 117, 104}, []float64{1, 1, 1}},
		// The mean and deviation of CIFAR-10's pixels.
		{"cifar10", RGB, 1, []float64{0.4914, 0.4822, 0.4465}, []float64{0.2470, 0.2435, 0.2616}},
		// The mean over CIFAR-10's images of each image's own deviation.
		{"cifar10-per-image", RGB, 1, []float64{0.4914, 0.4822, 0.4465}, []float64{0.2023, 0.1994, 0.2010}},
		{"half", RGB, 1, []float64{0.5, 0.5, 0.5}, []float64{0.5, 0.5, 0.5}},
		{"imagenet", RGB, 1, []float64{0.485, 0.456, 0.406}, []float64{0.229, 0.224, 0.225}},
		{"raw", RGB, 255, []float64{0, 0, 0}, []float64{1, 1, 1}},
		{"resisc45", RGB, 1, []float64{0.368, 0.381, 0.344}, []float64{0.200, 0.181, 0.181}},
		{"unit", RGB, 1, []float64{0, 0, 0}, []float64{1, 1, 1}},
	}
}

// PresetNamed returns the preset called name.
func PresetNamed(name string) (Preset, bool) {
	all := Presets()
	i := slices.IndexFunc(all, func(p Preset) bool { return p.Name == name })
	if i < 0 {
		return Preset{}, false
	}
	return all[i], true
}
