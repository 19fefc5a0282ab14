import { stat } from 'node:fs/promises'
import type { CdiEdits, CdiFile } from './cdi-file.ts'
import { type DriverGpu, driverGpus } from './models.ts'
import { describeCdiProblem, readCdiDirectories } from './read-cdi.ts'

export interface GpuSettings {
  /** Where CDI files are; later ones go before earlier ones. */
  readonly cdiDirectories: readonly string[]
  /** Where the driver tells of its devices. */
  readonly driverDirectory: string
}

/** A whole GPU of this machine, which one sandbox at a time can have. */
export interface GpuDevice {
  /** `VENDOR/CLASS=NAME`, the same as long as the machine has it. */
  readonly name: string
  /** As its driver or its file calls it; `unknown` where neither does. */
  readonly model: string
}

export interface MachineGpus {
  readonly devices: readonly GpuDevice[]
  /** One line each: files, and devices, that can't be used. */
  readonly problems: readonly string[]
}

/** In a CDI file's annotations of a device, or of all its devices: what no driver tells. */
export const MODEL_ANNOTATION = 'sandlot.model'

/** One GPU with what a sandbox gets of it. */
export interface KnownGpu extends GpuDevice {
  /** Of its file for every device, then of its own. */
  readonly edits: readonly CdiEdits[]
}

/** What this machine has, read anew: files change when a driver is installed. */
export async function knownGpus(
  settings: GpuSettings,
): Promise<{ readonly gpus: readonly KnownGpu[]; readonly problems: readonly string[] }> {
  const { files, problems } = await readCdiDirectories(settings.cdiDirectories)
  const driver = await driverGpus(settings.driverDirectory)
  const lines = problems.map(describeCdiProblem)
  const byName = new Map<string, { readonly node: string; readonly gpu: KnownGpu }>()
  for (const { path, file } of files) {
    if (!isOfGpus(file)) continue
    for (const device of file.devices) {
      const name = `${file.kind}=${device.name}`
      const nodes = own(file, device.containerEdits)
      const [node] = nodes
      // A name for all of them, or for none, is no device.
      if (nodes.length !== 1 || node === undefined) {
        if (device.name !== 'all')
          lines.push(`${path}: ${name} has ${nodes.length} nodes of its own`)
        continue
      }
      if (isPart(device.name, device.containerEdits)) {
        lines.push(
          `${path}: ${name} is a part of a GPU (MIG), which the runtime can't give to a sandbox`,
        )
        continue
      }
      const missing = await missingNode(device.containerEdits)
      if (missing !== undefined) {
        lines.push(`${path}: ${name}: there is no ${missing} on this machine`)
        continue
      }
      const model =
        device.annotations[MODEL_ANNOTATION] ??
        file.annotations[MODEL_ANNOTATION] ??
        modelOf(driver, device.name, node) ??
        'unknown'
      const edits = [file.containerEdits, device.containerEdits]
      byName.set(name, { node, gpu: { name, model, edits } })
    }
  }
  return { gpus: eachOnce(byName.values()), problems: lines }
}

/** One device has several names: its number goes before its UUID. */
function eachOnce(
  found: Iterable<{ readonly node: string; readonly gpu: KnownGpu }>,
): readonly KnownGpu[] {
  const byNode = new Map<string, KnownGpu>()
  for (const { node, gpu } of found) {
    const known = byNode.get(node)
    if (!known || gpu.name.length < known.name.length) byNode.set(node, gpu)
  }
  return [...byNode.values()].sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }))
}

export async function machineGpus(settings: GpuSettings): Promise<MachineGpus> {
  const { gpus, problems } = await knownGpus(settings)
  return { devices: gpus.map(({ name, model }) => ({ name, model })), problems }
}

function isOfGpus({ kind }: CdiFile): boolean {
  return kind.endsWith('/gpu')
}

/** Nodes that tell this device from others: not those that all of its file have, nor the control nodes of the driver. */
function own({ containerEdits }: CdiFile, edits: CdiEdits): readonly string[] {
  const shared = new Set(containerEdits.deviceNodes.map((node) => node.path))
  return edits.deviceNodes
    .map((node) => node.path)
    .filter((path) => !shared.has(path) && !/^\/dev\/(dri\/|nvidia(ctl|-uvm|-modeset))/.test(path))
    .filter((path) => !path.startsWith('/dev/nvidia-caps'))
}

function isPart(name: string, edits: CdiEdits): boolean {
  return (
    /^(mig|MIG-)|:/.test(name) ||
    edits.deviceNodes.some(({ path }) => path.includes('/nvidia-caps/'))
  )
}

async function missingNode(edits: CdiEdits): Promise<string | undefined> {
  for (const { path, hostPath = path } of edits.deviceNodes) {
    const found = await stat(hostPath).catch(() => undefined)
    if (!found?.isCharacterDevice()) return hostPath
  }
  return undefined
}

function modelOf(driver: readonly DriverGpu[], name: string, node: string): string | undefined {
  const minor = Number(/^\/dev\/nvidia(\d+)$/.exec(node)?.[1])
  return driver.find((gpu) => gpu.minor === minor || gpu.uuid === name)?.model
}
