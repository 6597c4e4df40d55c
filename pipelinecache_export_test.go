package vkomp

// ReadPipelines returns the contents with which a device's VkPipelineCache is created, and the name
// of the file that they are from, "" for none.
func ReadPipelines(d Device) (data []byte, file string) {
	if f, _ := d.d.pipelineFile(); f != nil {
		file = f.Path()
	}
	return d.d.readPipelines(), file
}

// WritePipelines writes a device's file.
func WritePipelines(d Device, data []byte) error {
	f, _ := d.d.pipelineFile()
	return f.Write(data)
}
