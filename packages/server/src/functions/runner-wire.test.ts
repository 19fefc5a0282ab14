import { expect, test } from 'vitest'
import { type RunnerFrame, readLines } from './runner-wire.ts'

function read(chunks: readonly string[]) {
  const frames: (RunnerFrame | undefined)[] = []
  const texts: string[] = []
  const lines = readLines('SECRET', {
    frame: (frame) => frames.push(frame),
    text: (text) => texts.push(text),
  })
  for (const chunk of chunks) lines.push(Buffer.from(chunk))
  return { frames, texts }
}

test('frames are told from what programs print, wherever pieces are cut', () => {
  const whole =
    'hello\nno end of lineSECRET{"k":"ready"}\nSECRET{"k":"value","id":"1","json":"5"}\nbye\n'
  const expected = {
    frames: [{ k: 'ready' }, { k: 'value', id: '1', json: '5' }],
    texts: ['hello', 'no end of line', 'bye'],
  }
  expect(read([whole])).toEqual(expected)
  expect(read([...whole])).toEqual(expected)
})

test('what is no frame is none, and a line without an end is not kept for ever', () => {
  expect(read(['SECRET{"k":"what"}\nSECRETnonsense\n']).frames).toEqual([undefined, undefined])
  expect(read(['x'.repeat(300_000)]).texts).toHaveLength(1)
})

test('a frame after a long line without an end is one, wherever it is cut', () => {
  const long = 'x'.repeat(262_140)
  const frame = `SECRET{"k":"value","id":"1","json":"${'5'.repeat(1_000)}"}\n`
  for (const cut of [0, 3, 6, 20, 900]) {
    const pieces = [long, frame.slice(0, cut), frame.slice(cut)]
    expect(read(pieces).frames).toMatchObject([{ k: 'value', id: '1' }])
  }
})
