// Names of the bits of `VkBufferUsageFlags` and `VkImageUsageFlags`, lowest bit first; empty for unknown bits.

const BUFFER_USAGE = [
  'TRANSFER_SRC', 'TRANSFER_DST', 'UNIFORM_TEXEL_BUFFER', 'STORAGE_TEXEL_BUFFER',
  'UNIFORM_BUFFER', 'STORAGE_BUFFER', 'INDEX_BUFFER', 'VERTEX_BUFFER',
  'INDIRECT_BUFFER', 'CONDITIONAL_RENDERING', 'SHADER_BINDING_TABLE', 'TRANSFORM_FEEDBACK_BUFFER',
  'TRANSFORM_FEEDBACK_COUNTER_BUFFER', 'VIDEO_DECODE_SRC', 'VIDEO_DECODE_DST', 'VIDEO_ENCODE_DST',
  'VIDEO_ENCODE_SRC', 'SHADER_DEVICE_ADDRESS', '', 'ACCELERATION_STRUCTURE_BUILD_INPUT_READ_ONLY',
  'ACCELERATION_STRUCTURE_STORAGE', 'SAMPLER_DESCRIPTOR_BUFFER', 'RESOURCE_DESCRIPTOR_BUFFER', 'MICROMAP_BUILD_INPUT_READ_ONLY',
  'MICROMAP_STORAGE', 'EXECUTION_GRAPH_SCRATCH', 'PUSH_DESCRIPTORS_DESCRIPTOR_BUFFER',
];

const IMAGE_USAGE = [
  'TRANSFER_SRC', 'TRANSFER_DST', 'SAMPLED', 'STORAGE',
  'COLOR_ATTACHMENT', 'DEPTH_STENCIL_ATTACHMENT', 'TRANSIENT_ATTACHMENT', 'INPUT_ATTACHMENT',
  'FRAGMENT_SHADING_RATE_ATTACHMENT', 'FRAGMENT_DENSITY_MAP', 'VIDEO_DECODE_DST', 'VIDEO_DECODE_SRC',
  'VIDEO_DECODE_DPB', 'VIDEO_ENCODE_DST', 'VIDEO_ENCODE_SRC', 'VIDEO_ENCODE_DPB',
  '', '', 'INVOCATION_MASK', 'ATTACHMENT_FEEDBACK_LOOP',
  'SAMPLE_WEIGHT', 'SAMPLE_BLOCK_MATCH', 'HOST_TRANSFER',
];

// Names of the flags that are set. An unknown bit is shown as a number.
function usageNames(kind, usage) {
  if (kind === 'UNKNOWN') return usage ? [`0x${usage.toString(16)}`] : [];
  const table = kind === 'BUFFER' ? BUFFER_USAGE : IMAGE_USAGE;
  const names = [];
  for (let bit = 0; bit < 53; bit += 1) {
    // Divided, not shifted: shifts are limited to 32 bits, and usages have up to 64.
    if (Math.floor(usage / 2 ** bit) % 2 === 1) names.push(table[bit] || `0x${(2 ** bit).toString(16)}`);
  }
  return names;
}
