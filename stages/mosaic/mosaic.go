// Package mosaic holds the stages that put several images into one.
package mosaic
