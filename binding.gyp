{
  # The way in for node-gyp. CMakeLists.txt holds the sources; the output named here never exists,
  # so that CMake decides each time what is out of date.
  "targets": [
    {
      "target_name": "torchformer",
      "type": "none",
      "actions": [
        {
          "action_name": "cmake",
          "inputs": ["CMakeLists.txt"],
          "outputs": ["<(PRODUCT_DIR)/.never"],
          "action": ["node", "scripts/build.cjs"]
        }
      ]
    }
  ]
}
