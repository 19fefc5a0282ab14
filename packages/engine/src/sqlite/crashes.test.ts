import { describeCrashes } from '../conformance/describe-crashes.ts'
import { makeSqliteEngine } from './under-test.ts'

describeCrashes(makeSqliteEngine)
