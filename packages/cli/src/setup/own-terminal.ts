import { spawnSync } from 'node:child_process'

const PATIENCE_MS = 2_000

/**
 * From now on the terminal of this process shows bytes as they are. Node.js leaves a line feed to become a new line, which programs
 * that fill the screen don't mean; it puts that back too when it leaves raw mode. Without `stty` it stays so.
 */
export function passOutputOn(): void {
  spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'], timeout: PATIENCE_MS })
}
