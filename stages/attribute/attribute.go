// Package attribute has the attribution methods: stages that map every image to the contribution of each
// pixel to a class.
//
// A method is a file with its doc, parameters, defaults and mathematics; method.go declares its stage, and
// registry/builtin.go lists it. Larger methods have a second file: abslrp_start.go, guided_ig_path.go,
// rise_masks.go, xrai_regions.go, external_files.go, owen.go of partition-shap, principal.go of eigen-cam.
//
// common.go resolves the target and normalises the image. A method with backward passes states these
// (backward.go, relevant.go), the rules of gradients by a parameter (balance.go); backward_groups.go runs the
// passes of all methods at once, and the method combines their results; attention_groups.go does so for
// methods of attention. Other methods run passes along paths (straight.go, walk.go, quadrature.go), or
// forward passes of masks or at layers (layer_values.go, view.go, attention.go, baselines.go), or replace
// pixels by substrates (hidden.go), or run none and solve the responses of perturb/subset for the values of
// units (subsets.go, least_squares.go); class activation maps are cam.go, and layers.go joins those of
// several layers. Values become planes (tapped.go), are resized (resize.go) and reduced to one channel, and
// common.go puts the map; text.go has what is special of texts. account.go warns if its sum isn't the one of
// the theory; tolerance.go bounds its deviation on other devices.
//
// Methods that are one program emit their map as nodes, too: compile.go makes a model's file with it, an
// emission, in the steps of compile_file.go. compile_backward.go has the backward passes, compile_cam.go
// class activation maps, compile_path.go sums along paths and comparisons, compile_attention.go attention,
// and compile_planes.go what common.go, tapped.go and resize.go do; compile_check.go runs a file beside its
// method.
package attribute
