// Storage
import GRDB
