// Roles: the main use of a resource, by its usage flags. The first role whose flags are set counts.

const ROLES = {
  vertex: 'Vertex, index',
  uniform: 'Uniform',
  storage: 'Storage',
  indirect: 'Indirect',
  staging: 'Staging',
  acceleration: 'Acceleration structure',
  buffer: 'Other buffers',
  attachment: 'Attachment',
  depth: 'Depth, stencil',
  sampled: 'Sampled',
  'storage-image': 'Storage image',
  image: 'Other images',
  unknown: 'Use not known',
};

const BUFFER_ROLES = [
  ['acceleration', 0x180000],
  ['vertex', 0xc0],
  ['indirect', 0x100],
  ['storage', 0x28],
  ['uniform', 0x14],
];

// A render target is often sampled too, and a storage image nearly always. Transient and input attachments count as
// attachments.
const IMAGE_ROLES = [
  ['depth', 0x20],
  ['attachment', 0xd0],
  ['storage-image', 0x8],
  ['sampled', 0x4],
];

const TRANSFER = 0x3;

function roleOf(allocation) {
  if (allocation.role === undefined) allocation.role = roleFor(allocation.kind, allocation.usage);
  return allocation.role;
}

function roleFor(kind, usage) {
  if (kind === 'UNKNOWN') return 'unknown';
  // Bit operations have 32 bits, and usages up to 64.
  const flags = usage % 2 ** 32;
  const find = (roles) => (roles.find(([, mask]) => (flags & mask) !== 0) || [null])[0];
  if (kind !== 'BUFFER') return find(IMAGE_ROLES) || 'image';
  const isStaging = usage !== 0 && usage <= TRANSFER;
  return find(BUFFER_ROLES) || (isStaging ? 'staging' : 'buffer');
}
