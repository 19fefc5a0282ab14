const ANSWER = 0x8180
const TYPE_A = 1

/** The answer to a question of DNS: every name has this one IPv4 address, and no other. */
export function answerQuestion(question: Buffer, address: string): Buffer {
  let end = 12
  while ((question[end] ?? 0) > 0) end += 1 + (question[end] ?? 0)
  const isA = question.readUInt16BE(end + 1) === TYPE_A
  const head = Buffer.from(question.subarray(0, end + 5))
  head.writeUInt16BE(ANSWER, 2)
  head.writeUInt16BE(isA ? 1 : 0, 6)
  head.writeUInt32BE(0, 8)
  if (!isA) return head
  const fixed = Buffer.from([0xc0, 0x0c, 0, TYPE_A, 0, 1, 0, 0, 0, 60, 0, 4])
  return Buffer.concat([head, fixed, Buffer.from(address.split('.').map(Number))])
}
