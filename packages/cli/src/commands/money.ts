/** `1_234_567` → `1.234567 USD`: no more digits than there is. */
export function formatMicros(micros: number, currency: string | null): string {
  const text = (micros / 1e6).toFixed(6).replace(/(\.\d\d\d*?)0+$/, '$1')
  return currency === null ? text : `${text} ${currency}`
}
