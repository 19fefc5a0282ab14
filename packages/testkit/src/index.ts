export { type BuildBench, buildBench } from './build-bench.ts'
export { copiedContent } from './copied-content.ts'
export { listErofs, listErofsContents } from './erofs-listing.ts'
export { type GvisorPlaces, gvisorPlaces, whyNoGvisor } from './gvisor-places.ts'
export { expectNoLeaks, findLeaks } from './leaks.ts'
export { MemoryBlobs } from './memory-blobs.ts'
export { type OciLayoutInput, ociLayout } from './oci-layout.ts'
export { OciRegistry, type OciRegistryImage } from './oci-registry.ts'
export { type OrphanPlan, orphanSandboxes } from './orphan-sandboxes.ts'
export { ownPort } from './own-port.ts'
export { type TarMember, tarArchive, tarMember } from './tar-archive.ts'
export { temporaryDirectory } from './temporary-directory.ts'
export {
  bareImage,
  editorsImage,
  linkTestImages,
  openTestImages,
  pythonImage,
} from './test-images.ts'
