#!/bin/sh
# Compiles every source in this folder to the module beside it.
set -e
cd "$(dirname "$0")"
for source in *.comp *.vert; do
	target=vulkan1.2
	case $source in
	localsizeid.comp) target=vulkan1.3 ;; # SPIR-V 1.6, which has LocalSizeId for OpExecutionModeId
	esac
	glslangValidator --quiet --target-env $target -V -o "${source%.*}.spv" "$source"
done
for source in *.spvasm; do
	version=$(sed -n 's/^; Version: //p' "$source")
	spirv-as --target-env "spv$version" -o "${source%.*}.spv" "$source"
done
