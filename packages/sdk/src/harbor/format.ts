/** Names of the files of a task folder. */
export const SETTINGS_FILE = 'task.toml'
export const INSTRUCTION = 'instruction.md'
export const TEST_SCRIPT = 'test.sh'
export const SOLUTION_SCRIPT = 'solve.sh'
