// Package mosaic has the stages that compose one image from several: mosaic/grid (grid.go) draws images
// (sampler.go) and pastes them into a grid, mosaic/focus (focus.go) two of a class with two of others;
// mosaic/gae (gae.go) pastes four into the size of one.
package mosaic
