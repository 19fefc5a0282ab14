/** A line that is drawn again in place on a terminal, and a plain line now and then elsewhere. */
import { stderr } from 'node:process'
import { createLogUpdate } from 'log-update'
import { isInteractive } from './terminal.ts'

const REDRAW_MS = 100
const PLAIN_MS = 5_000

export interface ProgressLine extends Disposable {
  /** Shows this text, now or soon. */
  update(text: string): void
}

export function startProgressLine(): ProgressLine {
  const draw = isInteractive ? createLogUpdate(stderr) : undefined
  const everyMs = draw ? REDRAW_MS : PLAIN_MS
  let shownMs = 0
  let latest = ''
  const show = () => {
    shownMs = performance.now()
    if (draw) draw(latest)
    else stderr.write(`${latest}\n`)
  }
  return {
    update(text) {
      latest = text
      if (performance.now() - shownMs >= everyMs) show()
    },
    [Symbol.dispose]() {
      if (latest !== '') show()
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
  const perSecond = done / (elapsedMs / 1000)
  const parts = [
    `${done}/${total} done`,
    `${running} running`,
    `${queued} queued`,
    `${perSecond.toFixed(1)}/s`,
  ]
  for (const [outcome, count] of failures) parts.push(`${outcome} ${count}`)
  if (done > 0 && done < total) parts.push(`${describeSeconds((total - done) / perSecond)} left`)
  return parts.join(', ')
}

function describeSeconds(seconds: number): string {
  const whole = Math.ceil(seconds)
  return whole < 60 ? `${whole}s` : `${Math.floor(whole / 60)}m ${whole % 60}s`
}
