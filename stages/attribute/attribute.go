// Package attribute has the attribution methods: stages that map every image to the contribution of each
// pixel to a class.
//
// A method is a file with its doc, parameters, defaults and mathematics; method.go declares its stage, and
// registry/builtin.go lists it. The data's way: common.go resolves the target and normalises the image.
// Methods of backward passes state these (backward.go, relevant.go), shared_forward.go runs those of all
// methods at once, and the method combines the results. Other methods run forward passes at paths, masks or
// layers (layer_values.go, view.go, attention.go, baselines.go). Values become planes (tapped.go), are
// resized (resize.go) and reduced to one channel, and common.go puts the map. account.go warns
// where its sum isn't what theory says.
package attribute
