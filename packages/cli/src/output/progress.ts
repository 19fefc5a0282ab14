/** A line that is drawn again in place on a terminal, and a plain line now and then elsewhere. */
import { stderr } from 'node:process'
import { createLogUpdate } from 'log-update'
import { isInteractive } from './terminal.ts'

const REDRAW_MS = 100
const PLAIN_MS = 5_000

export interface ProgressLine extends Disposable {
  /** Shows this text, now or with the next one that is due. */
  update(text: string): void
}

export interface ProgressOptions {
  /** Default: standard error. */
  readonly stream?: Pick<NodeJS.WriteStream, 'write'> & NodeJS.WritableStream
  /** Whether lines can be drawn again. Default: when it is a terminal. */
  readonly redraws?: boolean
  readonly now?: () => number
}

/** The last text is shown at the latest when the line is disposed of. */
export function startProgressLine(options: ProgressOptions = {}): ProgressLine {
  const { stream = stderr, redraws = isInteractive, now = () => performance.now() } = options
  const draw = redraws ? createLogUpdate(stream as NodeJS.WriteStream) : undefined
  const everyMs = draw ? REDRAW_MS : PLAIN_MS
  let shownMs = Number.NEGATIVE_INFINITY
  let shown = ''
  let latest = ''
  const show = () => {
    shownMs = now()
    if (draw) draw(latest)
    else if (latest !== shown) stream.write(`${latest}\n`)
    shown = latest
  }
  return {
    update(text) {
      latest = text
      if (now() - shownMs >= everyMs) show()
    },
    [Symbol.dispose]() {
      if (latest !== shown) show()
      draw?.done()
    },
  }
}

export interface Counts {
  readonly done: number
  readonly running: number
  readonly queued: number
  readonly failures: ReadonlyMap<string, number>
  readonly elapsedMs: number
}

/** `120/492 done, 8 running, 364 queued, 4.1/s, sandbox_oom 3, 1m 31s left`. */
export function describeProgress({ done, running, queued, failures, elapsedMs }: Counts): string {
  const total = done + running + queued
  const perSecond = elapsedMs > 0 ? done / (elapsedMs / 1000) : 0
  const parts = [
    `${done}/${total} done`,
    `${running} running`,
    `${queued} queued`,
    `${perSecond.toFixed(1)}/s`,
  ]
  for (const [outcome, count] of failures) parts.push(`${outcome} ${count}`)
  if (perSecond > 0 && done < total) {
    parts.push(`${describeSeconds((total - done) / perSecond)} left`)
  }
  return parts.join(', ')
}

function describeSeconds(seconds: number): string {
  const whole = Math.ceil(seconds)
  if (whole < 60) return `${whole}s`
  const minutes = Math.floor(whole / 60)
  return minutes < 60
    ? `${minutes}m ${whole % 60}s`
    : `${Math.floor(minutes / 60)}h ${minutes % 60}m`
}
