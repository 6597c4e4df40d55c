module github.com/vkomp/vkomp/interop/vgpu

go 1.26.0

require (
	github.com/goki/vgpu v1.0.34
	github.com/goki/vulkan v1.0.6
	github.com/vkomp/vkomp v0.0.0
)

require (
	github.com/anthonynsimon/bild v0.13.0 // indirect
	github.com/go-gl/glfw/v3.3/glfw v0.0.0-20221017161538-93cebf72946b // indirect
	github.com/goki/ki v1.1.11 // indirect
	github.com/goki/mat32 v1.0.14 // indirect
	github.com/vulkan-go/vulkan v0.0.0-20221209234627-c0a353ae26c8 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/image v0.21.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
)

replace github.com/vkomp/vkomp => ../..
