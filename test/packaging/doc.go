// Package packaging tries what a release is made of: binaries, packages for Debian and for RPM, and the image's
// Dockerfile. The packages are made by make packages, and installed on a Debian that boots in namespaces of its own.
package packaging
