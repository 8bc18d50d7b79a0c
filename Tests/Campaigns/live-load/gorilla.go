// What is posted goes to all who listen: a broadcast with gorilla/websocket and prepared messages.
package main

import (
	"io"
	"net/http"
	"os"
	"sync"

	"github.com/gorilla/websocket"
)

func main() {
	upgrader := websocket.Upgrader{
		ReadBufferSize: 512, WriteBufferSize: 512, WriteBufferPool: &sync.Pool{},
		CheckOrigin: func(*http.Request) bool { return true },
	}
	var lock sync.Mutex
	listeners := map[chan *websocket.PreparedMessage]bool{}
	http.HandleFunc("/listen", func(writer http.ResponseWriter, request *http.Request) {
		connection, err := upgrader.Upgrade(writer, request, nil)
		if err != nil {
			return
		}
		messages := make(chan *websocket.PreparedMessage, 64)
		lock.Lock()
		listeners[messages] = true
		lock.Unlock()
		go func() {
			for message := range messages {
				if connection.WritePreparedMessage(message) != nil {
					break
				}
			}
			connection.Close()
		}()
		for {
			if _, _, err := connection.NextReader(); err != nil {
				break
			}
		}
		lock.Lock()
		delete(listeners, messages)
		lock.Unlock()
		close(messages)
	})
	http.HandleFunc("/publish", func(writer http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		message, _ := websocket.NewPreparedMessage(websocket.TextMessage, body)
		lock.Lock()
		for messages := range listeners {
			select {
			case messages <- message:
			default:
			}
		}
		lock.Unlock()
	})
	if err := http.ListenAndServe("127.0.0.1:"+os.Args[1], nil); err != nil {
		panic(err)
	}
}
