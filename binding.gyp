{
  # The entry point for node-gyp. CMakeLists.txt lists the sources; the output named here never exists,
  # so that CMake always decides what is out of date.
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
